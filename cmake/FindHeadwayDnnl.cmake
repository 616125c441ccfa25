# oneDNN by its header and library, as DNNL::dnnl, and its version. Also installed: a consumer of the static library
# uses the same file.
# The package file that distributions ship asks for OpenCL's headers, which a CPU program has no use for, and refuses
# any request for "2.6 or later" that 3.x would meet; so it is only asked when somebody points at it with dnnl_DIR or
# when there is nothing but a static library, whose own needs it alone knows.
if(NOT TARGET DNNL::dnnl AND NOT dnnl_DIR)
  find_path(HeadwayDnnl_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(HeadwayDnnl_LIBRARY NAMES dnnl)
  mark_as_advanced(HeadwayDnnl_INCLUDE_DIR HeadwayDnnl_LIBRARY)
  if(HeadwayDnnl_INCLUDE_DIR AND HeadwayDnnl_LIBRARY AND NOT HeadwayDnnl_LIBRARY MATCHES "\\.a$")
    add_library(DNNL::dnnl UNKNOWN IMPORTED)
    set_target_properties(DNNL::dnnl PROPERTIES
      IMPORTED_LOCATION ${HeadwayDnnl_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${HeadwayDnnl_INCLUDE_DIR})
  endif()
endif()
if(NOT TARGET DNNL::dnnl AND (dnnl_DIR OR HeadwayDnnl_LIBRARY))
  find_package(dnnl QUIET CONFIG)
endif()

# The version is that of the headers which the target brings, whoever made it; unknown when it brings none yet.
unset(HeadwayDnnl_TARGET)
unset(HeadwayDnnl_VERSION)
unset(HeadwayDnnl_MISMATCH)
if(TARGET DNNL::dnnl)
  set(HeadwayDnnl_TARGET DNNL::dnnl)
  get_target_property(HeadwayDnnl_FOLDERS DNNL::dnnl INTERFACE_INCLUDE_DIRECTORIES)
  foreach(folder IN LISTS HeadwayDnnl_FOLDERS)
    string(REGEX REPLACE "^\\$<BUILD_INTERFACE:(.*)>$" "\\1" folder "${folder}")
    if(NOT HeadwayDnnl_VERSION AND EXISTS "${folder}/oneapi/dnnl/dnnl_version.h")
      file(STRINGS "${folder}/oneapi/dnnl/dnnl_version.h" lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
      string(REGEX REPLACE "[^0-9;]" "" HeadwayDnnl_VERSION "${lines}")
      list(JOIN HeadwayDnnl_VERSION "." HeadwayDnnl_VERSION)
    endif()
  endforeach()
  if(NOT HeadwayDnnl_VERSION AND dnnl_VERSION)
    set(HeadwayDnnl_VERSION ${dnnl_VERSION})
  endif()
  # Headers of one release and a library of another: the loader says so too late, or not at all.
  get_target_property(HeadwayDnnl_FILE DNNL::dnnl IMPORTED_LOCATION)
  if(HeadwayDnnl_VERSION AND HeadwayDnnl_FILE)
    get_filename_component(HeadwayDnnl_FILE ${HeadwayDnnl_FILE} REALPATH)
    if(HeadwayDnnl_FILE MATCHES "libdnnl\\.so\\.([0-9]+)")
      if(NOT HeadwayDnnl_VERSION MATCHES "^${CMAKE_MATCH_1}\\.")
        set(HeadwayDnnl_MISMATCH "oneDNN's headers are ${HeadwayDnnl_VERSION}, its library is ${HeadwayDnnl_FILE}")
        unset(HeadwayDnnl_TARGET)
      endif()
    endif()
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HeadwayDnnl REQUIRED_VARS HeadwayDnnl_TARGET VERSION_VAR HeadwayDnnl_VERSION
  REASON_FAILURE_MESSAGE "${HeadwayDnnl_MISMATCH}")
