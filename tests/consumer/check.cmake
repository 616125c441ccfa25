# Headway as engines have it. Installs a build into a staged tree, moves that tree, then compiles and runs the README's
# own example against it, by the CMake package and by pkg-config; and builds the core as a subproject of an engine that
# installs itself, linked the other way than the build (shared in a static one, static in a shared one), so that one
# build with GCC and one with clang, one of them shared, cover every pair. Needs SOURCE_DIR, BUILD_DIR, CXX, GENERATOR,
# CONFIG, VERSION, SHARED.
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}\nfailed: ${status}")
  endif()
endfunction()

# Fails unless the command fails and says `pattern`.
function(run_refused pattern)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(status EQUAL 0 OR NOT output MATCHES "${pattern}")
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}\nended with ${status}, expected a refusal with: ${pattern}")
  endif()
endfunction()

set(work ${BUILD_DIR}/consumer)
set(consumer ${SOURCE_DIR}/tests/consumer)
set(tools -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_BUILD_TYPE=${CONFIG})
file(REMOVE_RECURSE ${work})

# The first C++ block of the README, as it stands.
file(READ ${SOURCE_DIR}/README.md readme)
if(NOT readme MATCHES "```cpp\n([^`]*)```")
  message(FATAL_ERROR "README.md has no C++ block")
endif()
file(WRITE ${work}/example.cc "${CMAKE_MATCH_1}")
# The second, which loads a model: compiled and linked, since there is no model to run.
string(FIND "${readme}" "${CMAKE_MATCH_0}" begin)
string(LENGTH "${CMAKE_MATCH_0}" length)
math(EXPR begin "${begin} + ${length}")
string(SUBSTRING "${readme}" ${begin} -1 rest)
if(NOT rest MATCHES "```cpp\n([^`]*)```")
  message(FATAL_ERROR "README.md has no second C++ block")
endif()
file(WRITE ${work}/model.cc "${CMAKE_MATCH_1}")

# Nothing may remember where it was installed: neither the prefix given here nor the place it was staged in.
run(${CMAKE_COMMAND} -E env DESTDIR=${work}/stage
  ${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix /opt/headway)
file(RENAME ${work}/stage/opt/headway ${work}/moved)
if(EXISTS /opt/headway/include/headway/attention.h)
  message(FATAL_ERROR "DESTDIR was ignored")
endif()

file(GLOB_RECURSE pkgconfig ${work}/moved/headway.pc)
get_filename_component(pkgconfig ${pkgconfig} DIRECTORY)
get_filename_component(library_path ${pkgconfig} DIRECTORY)
if(EXISTS ${pkgconfig}/headway-onnx.pc)
  set(onnx ON)
else()
  set(onnx OFF)
endif()
foreach(via cmake pkg-config)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pkgconfig} ${CMAKE_COMMAND} -S ${consumer} -B ${work}/${via} ${tools}
    -D CMAKE_PREFIX_PATH=${work}/moved -D EXAMPLE=${work}/example.cc -D VIA=${via} -D VERSION=${VERSION}
    -D MODEL_EXAMPLE=${work}/model.cc -D ONNX=${onnx})
  run(${CMAKE_COMMAND} --build ${work}/${via} --config ${CONFIG})
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${library_path} ${work}/${via}/example)
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${library_path} ${work}/${via}/no_exceptions)
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${library_path} ${work}/${via}/c_engine)
  if(onnx)
    run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${library_path} ${work}/${via}/importer)
  endif()
endforeach()

# Public headers stand on their own, one by one, and ask for no exceptions of the code that includes them.
file(GLOB headers RELATIVE ${work}/moved/include ${work}/moved/include/headway/*.h)
foreach(header ${headers})
  file(WRITE ${work}/header.cc "#include <${header}>\n")
  run(${CXX} -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror -I${work}/moved/include ${work}/header.cc)
  run(${CXX} -std=c++20 -fsyntax-only -fno-exceptions -Wall -Wextra -Wpedantic -Werror -I${work}/moved/include
    ${work}/header.cc)
endforeach()

# A machine with another major of oneDNN: a static library that links it is not found there.
if(NOT SHARED)
  file(WRITE ${work}/other/include/oneapi/dnnl/dnnl.hpp "")
  file(WRITE ${work}/other/include/oneapi/dnnl/dnnl_version.h
    "#define DNNL_VERSION_MAJOR 9\n#define DNNL_VERSION_MINOR 1\n#define DNNL_VERSION_PATCH 2\n")
  file(WRITE ${work}/other/lib/libdnnl.so "")
  run_refused("oneDNN is 9.1.2 here, but headway was built with [0-9.]+: the majors must agree"
    ${CMAKE_COMMAND} -S ${consumer} -B ${work}/other/build ${tools} -D CMAKE_PREFIX_PATH=${work}/moved
    -D CMAKE_INCLUDE_PATH=${work}/other/include -D CMAKE_LIBRARY_PATH=${work}/other/lib
    -D EXAMPLE=${work}/example.cc -D VIA=cmake -D VERSION=${VERSION} -D ONNX=OFF)
endif()

# As a subproject, unoptimised and for Highway's baseline alone, which is quicker: what the engine's flags are, is the
# engine's. Then the engine's own package.
if(SHARED)
  set(other_linkage OFF)
else()
  set(other_linkage ON)
endif()
set(engine ${CMAKE_COMMAND} -S ${consumer}/engine -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${CXX}
  -D HEADWAY_DIR=${SOURCE_DIR} -D EXAMPLE=${work}/example.cc)
run(${engine} -B ${work}/engine -D CMAKE_BUILD_TYPE=Debug
  -D CMAKE_CXX_FLAGS_DEBUG=-O0\ -DHWY_COMPILE_ONLY_STATIC
  -D BUILD_SHARED_LIBS=${other_linkage})
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
run(${CMAKE_COMMAND} --build ${work}/engine --config Debug --parallel ${cores})
run(${work}/engine/example)
run(${CMAKE_COMMAND} --install ${work}/engine --config Debug --prefix ${work}/engine_installed)
run(${CMAKE_COMMAND} -S ${consumer} -B ${work}/engine_user -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${CXX}
  -D CMAKE_BUILD_TYPE=Debug -D CMAKE_PREFIX_PATH=${work}/engine_installed -D EXAMPLE=${consumer}/engine_user.cc
  -D VIA=engine -D ONNX=OFF)
run(${CMAKE_COMMAND} --build ${work}/engine_user --config Debug)
run(${work}/engine_user/example)
if(EXISTS ${work}/engine_installed/include/headway/graph.h)
  message(FATAL_ERROR "a core-only build installs graph.h, of which it has nothing")
endif()

# The engine may take Headway into its own export set, and have no build type; and what has to be fetched is told what
# it should be without a word to the engine.
run(${engine} -B ${work}/bundle -D BUNDLE=ON)
run(${engine} -B ${work}/fetched -D BUILD_SHARED_LIBS=ON -D HWY_ENABLE_TESTS=ON -D CMAKE_DISABLE_FIND_PACKAGE_hwy=ON
  -D FETCHCONTENT_SOURCE_DIR_HWY=${consumer}/fetched/hwy)
