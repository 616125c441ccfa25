// Arrays of Python as views: whatever speaks DLPack or the buffer protocol, on the CPU, without a copy. Knows nothing
// of operators.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>
#include <vector>

#include "headway/tensor.h"

namespace headway::python {

namespace nb = nanobind;

/// "f32" of DataType::kF32 and back. Throws kInvalidArgument listing the names.
DataType type_of_name(const std::string& name);

/// An array that a call reads. It is held, and with it the memory, until this object goes; that needs the GIL.
struct InputArray {
  nb::object owner;
  nb::ndarray<nb::ro> holder;
  ConstTensorView view;
};
/// None gives an absent view. Throws kInvalidArgument naming the argument for anything that is no array on the CPU.
InputArray input_array(nb::handle object, const char* name);

/// The same of one that a call writes; read-only arrays are refused.
struct OutputArray {
  nb::object owner;
  nb::ndarray<> holder;
  TensorView view;
};
OutputArray output_array(nb::handle object, const char* name);

/// Whole numbers as i32, which lengths, tables and positions are: an i32 array as it is; i64 arrays of any strides and
/// (nested) sequences of Python copied. Throws kInvalidArgument for a number that does not fit.
struct IndexArray {
  InputArray array;
  std::vector<std::int32_t> copy;
  ConstTensorView view;
};
IndexArray index_array(nb::handle object, const char* name);

}  // namespace headway::python
