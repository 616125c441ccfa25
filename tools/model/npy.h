// Reading .npy files: one array, in row-major order. Knows nothing of what it means.
#pragma once

#include <string>

#include "headway/tensor.h"

namespace headway::tools {

/// Throws kIo when the file cannot be read, kInvalidArgument naming the file when it is no such array or another size
/// than its header says, kUnsupported for Fortran order and for element types that no Tensor has.
Tensor read_npy(const std::string& path);

}  // namespace headway::tools
