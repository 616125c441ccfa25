// Small help with tensors that tools need: conversion to f32, unit axes, NaN filling, workspaces. Knows no operator.
#pragma once

#include <string>
#include <vector>

#include "headway/tensor.h"

namespace headway::tools {

/// The type in which attention on such tensors is computed: bf16 for bf16, f32 for the rest.
DataType compute_type(DataType type);

/// Converts tensors to f32 and owns the copies; tensors that need no conversion are passed on as views.
class F32Pool {
 public:
  /// `view` for attention computed in `type`: f32(), or a bf16 tensor as it is. Throws kInvalidArgument, saying that
  /// `type` is that of `leader`, when one of both is bf16 and the other is not. An absent view stays absent.
  ConstTensorView of(DataType type, const ConstTensorView& view, const std::string& name, const std::string& leader);
  /// `view` itself when it is f32, else an f32 copy of an f64, f16 or bf16 tensor. Throws kInvalidArgument with `name`
  /// and both types for the rest. An absent view stays absent.
  ConstTensorView f32(const ConstTensorView& view, const std::string& name);
  /// The same for a mask, which may also be bool.
  ConstTensorView mask(const ConstTensorView& view, const std::string& name);

 private:
  std::vector<Tensor> owned_;
};

/// `view` with a new axis of size 1 before `axis`.
ConstTensorView with_unit_axis(const ConstTensorView& view, int axis);
TensorView with_unit_axis(const TensorView& view, int axis);
/// Contiguous copy.
Tensor packed(const ConstTensorView& view);
/// An f32 or bf16 tensor filled with NaN, so that elements which are never written show.
Tensor nan_tensor(const Dims& dims, DataType type = DataType::kF32);
/// "[4, 49, 384]"
std::string text(const Dims& dims);

}  // namespace headway::tools
