# How every target of this repository is built, tested and installed.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/bin")

# With precompiled headers ccache needs to be told that macros defined there, and __TIME__, are no reason to miss.
find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros "${TANDEM_CCACHE}")
endif()

add_library(tandem_flags INTERFACE)
target_compile_options(tandem_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<BOOL:${TANDEM_WERROR}>:-Werror>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${TANDEM_CCACHE}>>:-fpch-preprocess>)
if(TANDEM_SANITIZE)
  # vptr checks need type information that a plain libtorch does not share with us.
  set(kinds "${TANDEM_SANITIZE}$<$<STREQUAL:${TANDEM_SANITIZE},address>:,undefined>")
  target_compile_options(tandem_flags INTERFACE "-fsanitize=${kinds}" -fno-sanitize=vptr -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  target_link_options(tandem_flags INTERFACE "-fsanitize=${kinds}")
endif()

# The sources of a folder are compiled as one, so that each header is read once a folder and not once a file.
function(tandem_join target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder "${source}" DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TANDEM_JOIN} UNITY_BUILD_MODE GROUP)
endfunction()

function(tandem_library name)
  add_library(${name} STATIC ${ARGN})
  tandem_join(${name})
  target_include_directories(${name}
    PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
    PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:tandem_flags>)
endfunction()

# Programs that include torch share the library's precompiled header.
function(tandem_torch_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE tandem_library tandem_flags)
  target_precompile_headers(${name} REUSE_FROM tandem_library)
endfunction()

# recipes/NAME/main.cpp as the program tandem-NAME, which `tandem NAME` finds.
function(tandem_recipe_program name)
  add_executable(tandem-${name} recipes/${name}/main.cpp)
  target_include_directories(tandem-${name} PRIVATE src)
  target_link_libraries(tandem-${name} PRIVATE tandem_${name} tandem_flags)
  target_precompile_headers(tandem-${name} REUSE_FROM tandem_library)
  set_target_properties(tandem-${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin"
    INSTALL_RPATH_USE_LINK_PATH TRUE)
  install(TARGETS tandem-${name})
endfunction()

function(tandem_example name)
  tandem_torch_program(${name} examples/${name}/main.cpp)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/examples")
endfunction()

# Benchmarks are built by the target `benches` alone: `make bench`. With LIBRARY, the program links that and no torch.
function(tandem_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIBRARY" "")
  list(TRANSFORM arg_UNPARSED_ARGUMENTS PREPEND "bench/${name}/" OUTPUT_VARIABLE sources)
  if(arg_LIBRARY)
    add_executable(${name}_bench ${sources})
    target_link_libraries(${name}_bench PRIVATE ${arg_LIBRARY} tandem_flags)
  else()
    tandem_torch_program(${name}_bench ${sources})
  endif()
  target_include_directories(${name}_bench PRIVATE src bench)
  set_target_properties(${name}_bench PROPERTIES OUTPUT_NAME ${name} EXCLUDE_FROM_ALL ON
                        RUNTIME_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/bench")
  if(NOT TARGET benches)
    add_custom_target(benches)
  endif()
  add_dependencies(benches ${name}_bench)
endfunction()

# What `tandem version` prints, as a header that `target` may include.
function(tandem_define_version target)
  set(TANDEM_TORCH_FACT "none")
  set(TANDEM_TORCH_CUDA_FACT false)
  if(TANDEM_TORCH)
    set(flavour CPU)
    if(TANDEM_TORCH_CUDA)
      set(flavour CUDA)
      set(TANDEM_TORCH_CUDA_FACT true)
    endif()
    set(TANDEM_TORCH_FACT "${TANDEM_TORCH_VERSION} (${flavour})")
  endif()
  configure_file(cmake/build_facts.h.in generated/build_facts.h @ONLY)
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/generated")
endfunction()

# A file of the sources, as a header `name` that `target` may include.
function(tandem_embed target name file)
  set(path "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  file(READ "${path}" TANDEM_EMBEDDED)
  configure_file(cmake/${name}.in generated/${name} @ONLY)
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/generated")
endfunction()

function(tandem_install)
  include(CMakePackageConfigHelpers)
  set(package "${CMAKE_INSTALL_LIBDIR}/cmake/tandem")
  install(TARGETS tandem_core tandem_checkpoint_core tandem_comm_core tandem_data tandem_image tandem_monitor tandem_train_core tandem_library EXPORT tandemTargets)
  install(DIRECTORY include/tandem TYPE INCLUDE)
  install(EXPORT tandemTargets NAMESPACE tandem:: DESTINATION ${package})
  configure_package_config_file(cmake/tandemConfig.cmake.in tandemConfig.cmake INSTALL_DESTINATION ${package})
  write_basic_package_version_file(tandemConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tandemConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/tandemConfigVersion.cmake"
                cmake/TandemTorch.cmake DESTINATION ${package})
  install(CODE "message(NOTICE \"tandem: built for torch ${TANDEM_TORCH_VERSION} in ${TANDEM_TORCH_DIR}, which the installed programs need; other projects may have another copy of that version (docs/install.md)\")")
endfunction()

# Sets TANDEM_YAML to what to link: the archive where there is one, so that the launcher can be a program of its own.
function(tandem_find_yaml)
  find_package(yaml-cpp REQUIRED)
  find_library(TANDEM_YAML_ARCHIVE libyaml-cpp.a)
  set(TANDEM_YAML yaml-cpp PARENT_SCOPE)
  if(TANDEM_YAML_ARCHIVE)
    set(TANDEM_YAML "${TANDEM_YAML_ARCHIVE}" PARENT_SCOPE)
  endif()
endfunction()

# A program without shared libraries starts a third faster, and runs on any machine.
function(tandem_link_whole target)
  find_library(TANDEM_LIBC_ARCHIVE libc.a)
  if(TANDEM_SANITIZE OR NOT TANDEM_YAML_ARCHIVE OR NOT TANDEM_LIBC_ARCHIVE)
    return()
  endif()
  target_link_options(${target} PRIVATE -static)
endfunction()
