# What the Python package needs besides the library: Python's own headers and nanobind, which that Python has as a
# module or nanobind_DIR leads to. Sets HeadwayPython_FOUND, and HeadwayPython_MISSING to a line that says what is not
# there.
set(HeadwayPython_FOUND OFF)
set(HeadwayPython_MISSING "no Python of 3.9 or later with its headers (python3-dev)")
find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module)
if(Python_FOUND)
  set(HeadwayPython_MISSING "no nanobind for ${Python_EXECUTABLE} (pip install nanobind)")
  if(NOT nanobind_DIR AND NOT nanobind_ROOT)
    execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
      OUTPUT_VARIABLE nanobind_DIR ERROR_QUIET)
  endif()
  find_package(nanobind CONFIG QUIET)
  if(nanobind_FOUND)
    set(HeadwayPython_FOUND ON)
    set(HeadwayPython_MISSING "")
  endif()
endif()
