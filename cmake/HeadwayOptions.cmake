# What a build can be told, and the flags that follow. Nothing here reaches a project that has this one inside it.
include(CMakeDependentOption)

option(HEADWAY_CORE_ONLY "Only attention and its layer: no graph, no fusion, no importer, no tools" OFF)
set(graph "NOT HEADWAY_CORE_ONLY")
cmake_dependent_option(HEADWAY_BUILD_TOOLS "The headway command" ${PROJECT_IS_TOP_LEVEL} ${graph} OFF)
cmake_dependent_option(HEADWAY_BUILD_TESTS "The tests" ${PROJECT_IS_TOP_LEVEL} ${graph} OFF)
cmake_dependent_option(HEADWAY_BUILD_PERF "The benchmarks" ${PROJECT_IS_TOP_LEVEL} ${graph} OFF)
cmake_dependent_option(HEADWAY_ONNX "The importer of ONNX files, which the command needs too" ${PROJECT_IS_TOP_LEVEL}
  ${graph} OFF)
option(HEADWAY_FUZZ "The libFuzzer targets, for clang" OFF)
option(HEADWAY_INSTALL "Install rules" ${PROJECT_IS_TOP_LEVEL})
option(HEADWAY_WERROR "Warnings are errors" OFF)
option(HEADWAY_UNITY "Tests and the command are compiled a folder at a time: half of the time for all, more for a change" OFF)
set(HEADWAY_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them: address,undefined or thread")

if(PROJECT_IS_TOP_LEVEL)
  option(BUILD_SHARED_LIBS "Shared libraries instead of static ones" OFF)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release)
  endif()
endif()

# Built along where all that it needs is there. Not with sanitizers, which would have to be the interpreter's too.
set(python OFF)
if(HEADWAY_BUILD_TESTS AND HEADWAY_ONNX AND NOT BUILD_SHARED_LIBS AND NOT HEADWAY_SANITIZE)
  include(HeadwayPython)
  set(python ${HeadwayPython_FOUND})
endif()
option(HEADWAY_BUILD_PYTHON "The Python package, to import from the build folder; pip builds it without this" ${python})

# Flags of our own code; a dependency that had to be fetched does not get them.
add_library(headway_flags INTERFACE)
target_compile_options(headway_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
# GCC 12 at -O3 sees overlaps in its own std::string that are not there (fixed in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(headway_flags INTERFACE -Wno-restrict)
endif()
if(HEADWAY_WERROR)
  target_compile_options(headway_flags INTERFACE -Werror)
endif()
if(HEADWAY_SANITIZE)
  # What a sanitizer reports ends the program: a test that only prints it would pass.
  target_compile_options(headway_flags INTERFACE
    -fsanitize=${HEADWAY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # A null pointer that is used ends the program unchecked too; the checks are a quarter of the compile time.
  if(HEADWAY_SANITIZE MATCHES "undefined")
    target_compile_options(headway_flags INTERFACE -fno-sanitize=null)
  endif()
  target_link_options(headway_flags INTERFACE -fsanitize=${HEADWAY_SANITIZE})
endif()
if(HEADWAY_FUZZ)
  target_compile_options(headway_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# For code whose own speed nobody waits for (the command's options and reports, tests): optimising it would take half of
# a build's time, and more with sanitizers.
add_library(headway_unhurried INTERFACE)
target_compile_options(headway_unhurried INTERFACE $<IF:$<CONFIG:Release>,-O1,-O0>)
