# Installs a build into a staged tree, moves that tree, then compiles and runs the README's own example against it, by
# the CMake package and by pkg-config. Needs SOURCE_DIR, BUILD_DIR, CXX, GENERATOR.
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}\nfailed: ${status}")
  endif()
endfunction()

set(work ${BUILD_DIR}/consumer)
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
run(${CMAKE_COMMAND} -E env DESTDIR=${work}/stage ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix /opt/headway)
file(RENAME ${work}/stage/opt/headway ${work}/moved)
if(EXISTS /opt/headway/include/headway/attention.h)
  message(FATAL_ERROR "DESTDIR was ignored")
endif()

file(GLOB_RECURSE pkgconfig ${work}/moved/headway.pc)
get_filename_component(pkgconfig ${pkgconfig} DIRECTORY)
if(EXISTS ${pkgconfig}/headway-onnx.pc)
  set(onnx ON)
else()
  set(onnx OFF)
endif()
foreach(via cmake pkg-config)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pkgconfig} ${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/consumer
    -B ${work}/${via} -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_PREFIX_PATH=${work}/moved -D EXAMPLE=${work}/example.cc -D VIA=${via}
    -D MODEL_EXAMPLE=${work}/model.cc -D ONNX=${onnx})
  run(${CMAKE_COMMAND} --build ${work}/${via})
  run(${work}/${via}/example)
  run(${work}/${via}/no_exceptions)
  if(onnx)
    run(${work}/${via}/importer)
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
