// Elementwise arithmetic and functions on rows of floats, vectorised for the best target of this CPU. Knows no tensor.
#pragma once

#include <cstdint>

namespace headway {

/// out[i] = f(a[i·a_step], b[i·b_step]); steps are 0 or 1. Pointers are of the kernel's element type; `out` may be
/// `a` or `b` where that operand has step 1.
struct BinaryRow {
  const void* a;
  std::int64_t a_step;
  const void* b;
  std::int64_t b_step;
  void* out;
  std::int64_t n;
};
using BinaryKernel = void (*)(const BinaryRow& row);
/// y[i] = f(x[i]), may be in place.
using UnaryKernel = void (*)(const void* x, void* y, std::int64_t n);

/// f32 kernels of one SIMD target, resolved once at plan time. NaN gives NaN in all of them.
struct ElementwiseKernels {
  BinaryKernel add, sub, mul, div;
  UnaryKernel exp;         ///< relative error ≤ 5e-7; inf above 88.72
  UnaryKernel tanh;        ///< relative error ≤ 5e-7
  UnaryKernel sigmoid;     ///< relative error ≤ 5e-7
  UnaryKernel erf;         ///< relative error ≤ 3e-7
  UnaryKernel gelu;        ///< x·Φ(x); error ≤ 3e-7·|x| everywhere, relative ≤ 4e-5 for x ≥ −5
  UnaryKernel gelu_tanh;   ///< x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))); error ≤ 5e-7·|x|
  UnaryKernel silu;        ///< x·sigmoid(x); relative error ≤ 8e-7 for x ≥ −86
  UnaryKernel sqrt;        ///< correctly rounded
  UnaryKernel reciprocal;  ///< correctly rounded
  UnaryKernel relu;
};

/// Of the current target (target.h).
ElementwiseKernels elementwise_kernels();

}  // namespace headway
