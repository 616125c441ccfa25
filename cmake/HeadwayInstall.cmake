# Install rules: public headers, libraries, the CMake package `headway` and headway.pc; tools/ has its own. Both
# packages find everything relative to themselves, so that an installed tree can be moved or staged with DESTDIR.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The importer's header goes with the importer, those of the graph with the graph.
set(other_headers PATTERN "onnx.h" EXCLUDE)
if(HEADWAY_CORE_ONLY)
  foreach(header graph operator session safetensors fusion register_ops)
    list(APPEND other_headers PATTERN "${header}.h" EXCLUDE)
  endforeach()
endif()
install(DIRECTORY runtime/include/headway ops/include/headway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "model.h" EXCLUDE ${other_headers})
install(TARGETS headway headway_runtime EXPORT headway
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# CMake package: find_package(headway), link headway::headway. A static library asks its user to have what it links.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/headway)
set(config_static ON)
if(BUILD_SHARED_LIBS)
  set(config_static OFF)
endif()
set(config_graph ON)
if(HEADWAY_CORE_ONLY)
  set(config_graph OFF)
endif()
install(EXPORT headway NAMESPACE headway:: DESTINATION ${package_dir} FILE headway-targets.cmake)
configure_package_config_file(cmake/headway-config.cmake.in ${PROJECT_BINARY_DIR}/headway-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/headway-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/headway-config.cmake ${PROJECT_BINARY_DIR}/headway-config-version.cmake
  cmake/FindHeadwayDnnl.cmake DESTINATION ${package_dir})

# pkg-config. A static library needs all that it links in Libs, since nobody asks for --static where nothing is shared;
# a dependency outside the linker's own folders brings its folder along.
set(pc_dependencies)
foreach(dependency DNNL::dnnl hwy::hwy)
  get_target_property(imported ${dependency} IMPORTED)
  if(imported)
    get_target_property(file ${dependency} LOCATION)
    get_filename_component(folder ${file} DIRECTORY)
    if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
      string(APPEND pc_dependencies "-L${folder} ")
    endif()
  endif()
endforeach()
string(REPLACE ";" " " pc_openmp "${OpenMP_CXX_FLAGS}")
string(APPEND pc_dependencies "-ldnnl -lhwy ${pc_openmp}")
if(BUILD_SHARED_LIBS)
  set(pc_libraries "-lheadway\nLibs.private: ${pc_dependencies}")
  set(pc_onnx_libraries "-lheadway_onnx\nLibs.private: -lonnx_proto -lprotobuf")
else()
  set(pc_libraries "-lheadway -lheadway_runtime ${pc_dependencies}")
  set(pc_onnx_libraries "-lheadway_onnx -lonnx_proto -lprotobuf")
endif()
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
# Few systems have a dnnl.pc; where there is one, it must be of the major that is linked here.
set(pc_conflicts)
if(HeadwayDnnl_VERSION MATCHES "^([0-9]+)\\.")
  math(EXPR next "${CMAKE_MATCH_1} + 1")
  set(pc_conflicts "Conflicts: dnnl < ${CMAKE_MATCH_1}, dnnl >= ${next}\n")
endif()
configure_file(cmake/headway.pc.in ${PROJECT_BINARY_DIR}/headway.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/headway.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The importer is a component of its own, find_package(headway COMPONENTS onnx), and headway-onnx.pc: whoever does not
# ask for it needs no protobuf. One built on fetched messages stays in the build tree.
if(TARGET headway_onnx AND HeadwayOnnx_LIBRARY)
  install(FILES runtime/include/headway/onnx.h ops/include/headway/model.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headway)
  install(TARGETS headway_onnx EXPORT headway-onnx
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT headway-onnx NAMESPACE headway:: DESTINATION ${package_dir} FILE headway-onnx-targets.cmake)
  configure_file(cmake/headway-onnx.pc.in ${PROJECT_BINARY_DIR}/headway-onnx.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/headway-onnx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
