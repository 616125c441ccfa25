# How a dependency is got: a target that is there already, then what the machine has, then a pinned fetch. Nothing that
# a dependency is told leaves the function that tells it: neither a parent's cache nor its variables change.
include(FetchContent)

# headway_fetch(name REPOSITORY url TAG tag [SETTINGS variable=value…]): the sources of a release, as a subdirectory.
# A static library that may end in a shared one of ours.
function(headway_fetch name)
  cmake_parse_arguments(ARG "" "REPOSITORY;TAG" "SETTINGS" ${ARGN})
  message(STATUS "${name} not found: fetching ${ARG_TAG}")
  # Plain variables win over the options and cache entries of a project, whatever policies it asks for.
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)
  set(CMAKE_POLICY_DEFAULT_CMP0126 NEW)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(BUILD_SHARED_LIBS OFF)
  foreach(setting IN LISTS ARG_SETTINGS)
    string(REGEX MATCH "^([^=]+)=(.*)$" matched "${setting}")
    set(${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  endforeach()
  FetchContent_Declare(${name} GIT_REPOSITORY ${ARG_REPOSITORY} GIT_TAG ${ARG_TAG} GIT_SHALLOW ON)
  FetchContent_MakeAvailable(${name})
endfunction()

# headway_find_or_fetch(target PACKAGE package VERSIONS version… SOURCE_TARGET target REPOSITORY … TAG … [SETTINGS …]):
# makes `target`. A package whose version file takes only its own major is asked for one version of each.
function(headway_find_or_fetch target)
  cmake_parse_arguments(ARG "" "PACKAGE;SOURCE_TARGET;REPOSITORY;TAG" "VERSIONS;SETTINGS" ${ARGN})
  foreach(version IN LISTS ARG_VERSIONS)
    if(NOT TARGET ${target})
      find_package(${ARG_PACKAGE} ${version} QUIET)
      if(TARGET ${target})
        message(STATUS "${ARG_PACKAGE} ${${ARG_PACKAGE}_VERSION}: ${${ARG_PACKAGE}_DIR}")
      endif()
    endif()
  endforeach()
  if(NOT TARGET ${target})
    headway_fetch(${ARG_PACKAGE} REPOSITORY ${ARG_REPOSITORY} TAG ${ARG_TAG} SETTINGS ${ARG_SETTINGS})
  endif()
  if(NOT TARGET ${target})
    add_library(${target} ALIAS ${ARG_SOURCE_TARGET})
  endif()
endfunction()
