# Everything that is linked: OpenMP, oneDNN and Highway by the libraries, the rest by tools, tests and benchmarks only.
include(HeadwayFetch)

set(HEADWAY_DNNL_MINIMUM 2.6)
set(HEADWAY_HWY_MINIMUM 1.0.3)

find_package(OpenMP REQUIRED COMPONENTS CXX)

# An embedding project may have made the target already; its version counts all the same.
find_package(HeadwayDnnl ${HEADWAY_DNNL_MINIMUM} QUIET MODULE)
if(HeadwayDnnl_FOUND)
  message(STATUS "oneDNN ${HeadwayDnnl_VERSION}: ${HeadwayDnnl_LIBRARY}")
elseif(HeadwayDnnl_VERSION)
  message(FATAL_ERROR "oneDNN is ${HeadwayDnnl_VERSION}, expected at least ${HEADWAY_DNNL_MINIMUM} with headers and "
    "library of one release: ${HeadwayDnnl_INCLUDE_DIR}, ${HeadwayDnnl_LIBRARY}")
else()
  set(HeadwayDnnl_VERSION 3.6.2)
  headway_fetch(dnnl REPOSITORY https://github.com/uxlfoundation/oneDNN.git TAG v${HeadwayDnnl_VERSION}
    SETTINGS DNNL_BUILD_EXAMPLES=OFF DNNL_BUILD_TESTS=OFF DNNL_BUILD_DOC=OFF ONEDNN_BUILD_GRAPH=OFF
    DNNL_ENABLE_WORKLOAD=INFERENCE DNNL_LIBRARY_TYPE=STATIC DNNL_CPU_RUNTIME=OMP)
  if(NOT TARGET DNNL::dnnl)
    add_library(DNNL::dnnl ALIAS dnnl)
  endif()
endif()

headway_find_or_fetch(hwy::hwy PACKAGE hwy VERSIONS ${HEADWAY_HWY_MINIMUM} SOURCE_TARGET hwy
  REPOSITORY https://github.com/google/highway.git TAG 1.2.0
  SETTINGS HWY_ENABLE_TESTS=OFF HWY_ENABLE_EXAMPLES=OFF HWY_ENABLE_CONTRIB=OFF)

if(HEADWAY_ONNX)
  include(HeadwayOnnx)
endif()

if(HEADWAY_BUILD_TOOLS OR HEADWAY_BUILD_TESTS)
  headway_find_or_fetch(CLI11::CLI11 PACKAGE CLI11 VERSIONS 2.1 SOURCE_TARGET CLI11
    REPOSITORY https://github.com/CLIUtils/CLI11.git TAG v2.4.2)
endif()
if(HEADWAY_BUILD_TOOLS)
  headway_find_or_fetch(fmt::fmt PACKAGE fmt VERSIONS 9 10 11 12 SOURCE_TARGET fmt
    REPOSITORY https://github.com/fmtlib/fmt.git TAG 10.2.1)
endif()
if(HEADWAY_BUILD_TOOLS OR HEADWAY_BUILD_PERF OR HEADWAY_BUILD_TESTS)
  headway_find_or_fetch(nlohmann_json::nlohmann_json PACKAGE nlohmann_json VERSIONS 3.11 SOURCE_TARGET nlohmann_json
    REPOSITORY https://github.com/nlohmann/json.git TAG v3.11.3)
endif()
if(HEADWAY_BUILD_TESTS)
  headway_find_or_fetch(GTest::gtest_main PACKAGE GTest VERSIONS 1.11 SOURCE_TARGET gtest_main
    REPOSITORY https://github.com/google/googletest.git TAG v1.14.0 SETTINGS INSTALL_GTEST=OFF)
endif()
if(HEADWAY_BUILD_PERF)
  headway_find_or_fetch(benchmark::benchmark PACKAGE benchmark VERSIONS 1.6 SOURCE_TARGET benchmark
    REPOSITORY https://github.com/google/benchmark.git TAG v1.8.3
    SETTINGS BENCHMARK_ENABLE_TESTING=OFF BENCHMARK_ENABLE_INSTALL=OFF BENCHMARK_ENABLE_WERROR=OFF)
endif()
