// The header of an .npy file: a Python dict of three entries. Decides what is well formed; knows nothing of the data.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "headway/tensor.h"

namespace headway::tools {

struct NpyHeader {
  std::string descr;  ///< NumPy's name of the element type, such as "<f4"
  bool fortran_order = false;
  Dims shape;
  std::size_t data_offset = 0;  ///< of the first element in the file
};

/// Reads versions 1, 2 and 3: the entries in any order, any space between tokens, either kind of quotes. Throws
/// kInvalidArgument, naming the file, what was expected and the byte where it is not; kUnsupported for other versions
/// and for elements of several fields. Takes time and memory in proportion to the header.
NpyHeader read_npy_header(std::span<const std::byte> file, const std::string& path);

}  // namespace headway::tools
