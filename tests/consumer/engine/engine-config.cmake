# The engine's own package: it links Headway, which has a package of its own.
include(CMakeFindDependencyMacro)
find_dependency(headway)
include(${CMAKE_CURRENT_LIST_DIR}/engine-targets.cmake)
