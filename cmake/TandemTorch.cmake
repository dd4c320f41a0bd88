# tandem_find_torch(): the imported target tandem::torch, from a wheel's torch folder or an unpacked libtorch.
#
# Torch's own CMake package is not used: for a CUDA wheel it demands a whole CUDA toolkit even where only headers are
# needed, and it takes whatever NCCL the system has. Sets TANDEM_TORCH_DIR, TANDEM_TORCH_VERSION, TANDEM_TORCH_CUDA (ON or
# OFF) and TANDEM_NCCL_INCLUDE (the folder of nccl.h, if it was found) in the caller's scope.

# The folder that holds include/ and lib/, given it, a folder above it, or the root of a virtual environment.
function(tandem_torch_root out dir)
  file(GLOB inside "${dir}/lib/python3*/site-packages/torch")
  foreach(candidate "${dir}" "${dir}/torch" ${inside})
    if(EXISTS "${candidate}/include/torch/csrc/api/include/torch/torch.h")
      get_filename_component(candidate "${candidate}" REALPATH)
      set(${out} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

# Asks a Python for its torch without importing it, which would take seconds.
function(tandem_torch_of_python out python)
  execute_process(
    COMMAND "${python}" -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${out} "${dir}" PARENT_SCOPE)
endfunction()

function(tandem_torch_choose out)
  if(NOT TANDEM_TORCH STREQUAL "AUTO")
    tandem_torch_root(root "${TANDEM_TORCH}")
    if(NOT root)
      message(FATAL_ERROR "torch: there is none in TANDEM_TORCH=${TANDEM_TORCH}\n"
                          "hint: name a torch package folder, an unpacked libtorch, or a virtual environment")
    endif()
    set(${out} "${root}" PARENT_SCOPE)
    return()
  endif()
  tandem_torch_of_python(of_python python3)
  foreach(candidate ${TANDEM_TORCH_CANDIDATES} "${CMAKE_SOURCE_DIR}/.venv" "${of_python}")
    tandem_torch_root(root "${candidate}")
    if(root)
      set(${out} "${root}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "torch: not found in ${CMAKE_SOURCE_DIR}/.venv, nor by python3\n"
                      "hint: run `make setup`, or pass -DTANDEM_TORCH=<folder>; -DTANDEM_TORCH=OFF builds the launcher alone")
endfunction()

function(tandem_torch_version out root)
  set(text "")
  if(EXISTS "${root}/version.py")
    file(READ "${root}/version.py" text)
  elseif(EXISTS "${root}/build-version")
    file(READ "${root}/build-version" text)
  endif()
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+[a-z0-9+.]*" version "${text}")
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

# CUDA is linked, and NCCL's c10d classes can be included, wherever the headers that belong to this torch are found.
function(tandem_add_cuda target root)
  # Nothing refers to these two by name, so a linker that drops what seems unused would silently drop CUDA.
  target_link_options(${target} INTERFACE
    "LINKER:--push-state,--no-as-needed,${root}/lib/libtorch_cuda.so,${root}/lib/libc10_cuda.so,--pop-state")
  set(packages "${root}/../nvidia")
  file(GLOB wheels "${packages}/cu[0-9]*/include" "${packages}/cuda_runtime/include")
  # Some wheels carry cuda_runtime.h without the crt/ that it includes; the toolkit has both.
  find_path(TANDEM_CUDA_INCLUDE crt/host_config.h HINTS ${wheels} PATHS /usr/local/cuda/include)
  # The wheel's own NCCL: the library torch loads is that one, and a system's nccl.h may be older.
  find_path(TANDEM_NCCL_INCLUDE nccl.h HINTS "${packages}/nccl/include" NO_DEFAULT_PATH)
  if(TANDEM_CUDA_INCLUDE AND TANDEM_NCCL_INCLUDE)
    target_include_directories(${target} SYSTEM INTERFACE "${TANDEM_NCCL_INCLUDE}" "${TANDEM_CUDA_INCLUDE}")
    target_compile_definitions(${target} INTERFACE USE_C10D_NCCL)
  else()
    message(NOTICE "torch: no NCCL, since its headers (${TANDEM_NCCL_INCLUDE}) or CUDA's (${TANDEM_CUDA_INCLUDE}) were not found")
  endif()
endfunction()

macro(tandem_find_torch)
  tandem_torch_choose(TANDEM_TORCH_DIR)
  tandem_torch_version(TANDEM_TORCH_VERSION "${TANDEM_TORCH_DIR}")
  if(TANDEM_TORCH_VERSION VERSION_LESS 2.10)
    message(FATAL_ERROR "torch: ${TANDEM_TORCH_DIR} is ${TANDEM_TORCH_VERSION}, older than 2.10\n"
                        "hint: run `make setup`, which makes a private one")
  endif()
  add_library(tandem::torch INTERFACE IMPORTED)
  target_include_directories(tandem::torch SYSTEM INTERFACE
    "${TANDEM_TORCH_DIR}/include" "${TANDEM_TORCH_DIR}/include/torch/csrc/api/include")
  target_compile_definitions(tandem::torch INTERFACE USE_DISTRIBUTED)
  target_link_libraries(tandem::torch INTERFACE
    "${TANDEM_TORCH_DIR}/lib/libtorch.so" "${TANDEM_TORCH_DIR}/lib/libtorch_cpu.so" "${TANDEM_TORCH_DIR}/lib/libc10.so")
  # Libtorch exports an old std::filesystem that crashes under newer headers, so libstdc++ must come before it.
  target_link_options(tandem::torch INTERFACE
    "LINKER:--push-state,--no-as-needed,-lstdc++,--pop-state" "LINKER:-rpath,${TANDEM_TORCH_DIR}/lib")
  set(TANDEM_TORCH_CUDA OFF)
  if(EXISTS "${TANDEM_TORCH_DIR}/lib/libtorch_cuda.so")
    set(TANDEM_TORCH_CUDA ON)
    tandem_add_cuda(tandem::torch "${TANDEM_TORCH_DIR}")
  endif()
endmacro()
