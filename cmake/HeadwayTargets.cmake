# How our own targets are made. Everything is set on the target, so that neither a parent project nor a fetched
# dependency is compiled otherwise than it would be.

# headway_target(name): what all of our code is compiled with; executables go to bin/ whatever the generator.
function(headway_target name)
  set_target_properties(${name} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    RUNTIME_OUTPUT_DIRECTORY $<1:${PROJECT_BINARY_DIR}/bin>)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:headway_flags>)
endfunction()

# headway_library(name FOLDERS folder… PUBLIC library… PRIVATE library…): a library of every .cc below the folders, with
# the public headers of <this folder>/include. Always there as the static library <name>_static, which tests and tools
# link since they use what a shared library hides; in a static build that is the library itself.
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
  if(BUILD_SHARED_LIBS)
    set(library ${name}_static)
    add_library(${library} STATIC ${sources})
  else()
    set(library ${name})
    add_library(${library} STATIC ${sources})
    add_library(${name}_static ALIAS ${name})
    add_library(headway::${name} ALIAS ${name})
  endif()
  headway_target(${library})
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_include_directories(${library}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(${library} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

# headway_shared_library(name OBJECTS library… PUBLIC library… PRIVATE library…): a shared library of what those static
# ones are made of. It shows HEADWAY_API and no more: the version script hides the instances of std templates, which
# the visibility of our own code does not reach.
function(headway_shared_library name)
  cmake_parse_arguments(ARG "" "" "OBJECTS;PUBLIC;PRIVATE" ${ARGN})
  list(TRANSFORM ARG_OBJECTS REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(${name} SHARED ${objects})
  headway_target(${name})
  set_target_properties(${name} PROPERTIES
    LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH "$ORIGIN")
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC $<INSTALL_INTERFACE:include>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/ops/include>)
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT HEADWAY_SANITIZE)
    set(script ${PROJECT_SOURCE_DIR}/cmake/headway.map)
    target_link_options(${name} PRIVATE LINKER:--version-script=${script} LINKER:-z,defs LINKER:--as-needed)
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${script})
  endif()
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

# headway_unity(name source…): with HEADWAY_UNITY the files of a folder are compiled as one, for half of the time. Names
# of such files differ within a folder; one that cannot be beside others says so by a first line "// Compiled alone:".
function(headway_unity name)
  if(NOT HEADWAY_UNITY)
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source ${ARGN})
    file(STRINGS ${source} first LIMIT_COUNT 1)
    if(NOT first MATCHES "^// Compiled alone:")
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(MAKE_C_IDENTIFIER ${folder} group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
endfunction()
