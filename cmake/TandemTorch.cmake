# tandem_find_torch(): the imported target tandem::torch, from a wheel's torch folder or an unpacked libtorch.
#
# Torch's own CMake package is not used: for a CUDA wheel it demands a whole CUDA toolkit even where only headers are
# needed, and it takes whatever NCCL the system has.
#
# Reads TANDEM_TORCH (a folder, or AUTO), TANDEM_TORCH_WANTED (the only version that fits; empty: 2.10 and newer) and
# TANDEM_TORCH_CANDIDATES (folders for AUTO). Sets TANDEM_TORCH_DIR, TANDEM_TORCH_VERSION, TANDEM_TORCH_CUDA (ON or OFF)
# and TANDEM_NCCL_INCLUDE (the folder of nccl.h, if it was found) in the caller's scope; or, where there is no such
# torch, TANDEM_TORCH_PROBLEM to a sentence and a hint.

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

# Where AUTO looks, the first one first.
function(tandem_torch_places out)
  file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" prefixes)
  tandem_torch_of_python(of_python python3)
  set(${out} ${CMAKE_PREFIX_PATH} ${prefixes} ${TANDEM_TORCH_CANDIDATES} "${CMAKE_SOURCE_DIR}/.venv" "${of_python}" PARENT_SCOPE)
endfunction()

function(tandem_torch_fits out version)
  set(fits FALSE)
  if(version STREQUAL TANDEM_TORCH_WANTED OR (NOT TANDEM_TORCH_WANTED AND NOT version VERSION_LESS 2.10))
    set(fits TRUE)
  endif()
  set(${out} ${fits} PARENT_SCOPE)
endfunction()

# Sets TANDEM_TORCH_DIR or TANDEM_TORCH_PROBLEM.
function(tandem_torch_choose)
  set(places "${TANDEM_TORCH}")
  set(searched "TANDEM_TORCH=${TANDEM_TORCH}")
  if(TANDEM_TORCH STREQUAL "AUTO")
    tandem_torch_places(places)
    list(JOIN TANDEM_TORCH_CANDIDATES ", " candidates)
    set(searched "CMAKE_PREFIX_PATH, ${candidates}, ${CMAKE_SOURCE_DIR}/.venv and python3")
    string(REPLACE ", , " ", " searched "${searched}")
  endif()
  set(instead ", and there is none in ${searched}")
  foreach(place IN LISTS places)
    tandem_torch_root(root "${place}")
    if(NOT place OR NOT root)
      continue()
    endif()
    tandem_torch_version(version "${root}")
    tandem_torch_fits(fits "${version}")
    if(fits)
      set(TANDEM_TORCH_DIR "${root}" PARENT_SCOPE)
      set(TANDEM_TORCH_PROBLEM "" PARENT_SCOPE)
      return()
    endif()
    set(instead ", found ${version} in ${root}")
  endforeach()
  set(need "tandem needs torch 2.10 or newer")
  set(hint "run `make setup`, which makes a private one; or pass -DTANDEM_TORCH=<folder>; -DTANDEM_TORCH=OFF builds the launcher alone")
  if(TANDEM_TORCH_WANTED)
    set(need "tandem was built for torch ${TANDEM_TORCH_WANTED}")
    set(hint "pass -DTANDEM_TORCH=<folder>: a torch package folder, an unpacked libtorch or a virtual environment with that version; or build tandem again")
  endif()
  set(TANDEM_TORCH_PROBLEM "torch: ${need}${instead}\nhint: ${hint}" PARENT_SCOPE)
endfunction()

# Libtorch exports an old std::filesystem. A program that carries a libstdc++ of its own uses it, and crashes.
function(tandem_warn_of_static_libstdcxx)
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libstdc++.so
                  OUTPUT_VARIABLE shared OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if("${CMAKE_CXX_FLAGS} ${CMAKE_EXE_LINKER_FLAGS} " MATCHES "-static(-libstdc\\+\\+)? " OR shared STREQUAL "libstdc++.so")
    message(WARNING "torch: this compiler links libstdc++ statically; with libtorch, std::filesystem then crashes\n"
                    "hint: leave out -static and -static-libstdc++, or use a compiler with a shared libstdc++")
  endif()
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

function(tandem_add_torch)
  add_library(tandem::torch INTERFACE IMPORTED)
  target_include_directories(tandem::torch SYSTEM INTERFACE
    "${TANDEM_TORCH_DIR}/include" "${TANDEM_TORCH_DIR}/include/torch/csrc/api/include")
  target_compile_definitions(tandem::torch INTERFACE USE_DISTRIBUTED)
  target_link_libraries(tandem::torch INTERFACE
    "${TANDEM_TORCH_DIR}/lib/libtorch.so" "${TANDEM_TORCH_DIR}/lib/libtorch_cpu.so" "${TANDEM_TORCH_DIR}/lib/libc10.so")
  # Libtorch exports an old std::filesystem that crashes under newer headers, so libstdc++ must come before it.
  target_link_options(tandem::torch INTERFACE
    "LINKER:--push-state,--no-as-needed,-lstdc++,--pop-state" "LINKER:-rpath,${TANDEM_TORCH_DIR}/lib")
  tandem_warn_of_static_libstdcxx()
endfunction()

macro(tandem_find_torch)
  tandem_torch_choose()
  if(NOT TANDEM_TORCH_PROBLEM)
    tandem_torch_version(TANDEM_TORCH_VERSION "${TANDEM_TORCH_DIR}")
    tandem_add_torch()
    set(TANDEM_TORCH_CUDA OFF)
    if(EXISTS "${TANDEM_TORCH_DIR}/lib/libtorch_cuda.so")
      set(TANDEM_TORCH_CUDA ON)
      tandem_add_cuda(tandem::torch "${TANDEM_TORCH_DIR}")
    endif()
  endif()
endmacro()
