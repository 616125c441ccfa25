# headway_library(name FOLDERS folder… PUBLIC library… PRIVATE library…): a library of every .cc below the folders, with
# the public headers of <this folder>/include and repository-rooted private includes.
function(headway_library name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;PUBLIC;PRIVATE" ${ARGN})
  set(sources)
  foreach(folder ${ARG_FOLDERS})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
    list(APPEND sources ${found})
    if(folder STREQUAL "simd")
      headway_simd_sources(${found})
    endif()
  endforeach()
  add_library(${name} STATIC ${sources})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:headway_flags>)
endfunction()

# headway_simd_sources(file…): files compiled once per SIMD target. Vectors wider than the baseline cross function
# borders only inside one target's namespace, so the ABI note says nothing; GCC 12 takes the undefined operands in its
# own AVX-512 header for uninitialised variables.
function(headway_simd_sources)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set_source_files_properties(${ARGN} PROPERTIES
      COMPILE_OPTIONS "-Wno-psabi;-Wno-uninitialized;-Wno-maybe-uninitialized")
  endif()
endfunction()
