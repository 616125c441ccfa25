# oneDNN by its header and library, as DNNL::dnnl. Also installed: a consumer of the static library uses the same file.
# The package file that distributions ship asks for OpenCL's headers, which a CPU program has no use for, and refuses
# any request for "2.6 or later" that 3.x would meet; so it is only asked when somebody points at it with dnnl_DIR or
# when there is nothing but a static library, whose own needs it alone knows.
if(NOT TARGET DNNL::dnnl AND NOT dnnl_DIR)
  find_path(HeadwayDnnl_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(HeadwayDnnl_LIBRARY NAMES dnnl)
  mark_as_advanced(HeadwayDnnl_INCLUDE_DIR HeadwayDnnl_LIBRARY)
  if(HeadwayDnnl_INCLUDE_DIR AND HeadwayDnnl_LIBRARY AND NOT HeadwayDnnl_LIBRARY MATCHES "\\.a$")
    set(HeadwayDnnl_VERSION_HEADER ${HeadwayDnnl_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h)
    file(STRINGS ${HeadwayDnnl_VERSION_HEADER} lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
    string(REGEX REPLACE "[^0-9;]" "" HeadwayDnnl_VERSION "${lines}")
    list(JOIN HeadwayDnnl_VERSION "." HeadwayDnnl_VERSION)
    add_library(DNNL::dnnl UNKNOWN IMPORTED)
    set_target_properties(DNNL::dnnl PROPERTIES
      IMPORTED_LOCATION ${HeadwayDnnl_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${HeadwayDnnl_INCLUDE_DIR})
  endif()
endif()
if(NOT TARGET DNNL::dnnl AND (dnnl_DIR OR HeadwayDnnl_LIBRARY))
  find_package(dnnl QUIET CONFIG)
  set(HeadwayDnnl_VERSION ${dnnl_VERSION})
endif()

if(TARGET DNNL::dnnl)
  set(HeadwayDnnl_TARGET DNNL::dnnl)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HeadwayDnnl REQUIRED_VARS HeadwayDnnl_TARGET VERSION_VAR HeadwayDnnl_VERSION)
