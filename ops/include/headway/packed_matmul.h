// A GEMM with packed weights for any number of rows, as an engine's projections and feed-forward take it. Usable with
// no graph. Knows no attention.
//
// Letters: M rows of a call, N columns, K depth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "headway/export.h"
#include "headway/profiler.h"
#include "headway/tensor.h"
#include "headway/threads.h"

namespace headway {

/// What the epilogue applies. Errors besides those of the sums: relu none, silu 1e-6·|x|, gelu (x·Φ(x)) 3e-7·|x|,
/// gelu_tanh 5e-7·|x|.
enum class Activation { kNone, kRelu, kSilu, kGelu, kGeluTanh };
/// "none", "relu", "silu", "gelu", "gelu_tanh".
HEADWAY_API const char* activation_name(Activation activation);

struct PackedMatmulSpec {
  std::int64_t columns = 0;  ///< N
  std::int64_t depth = 0;    ///< K
  Activation activation = Activation::kNone;
};

/// Weights as views, y = x·Wᵀ + b, f32 or bf16, any strides: a [K, N] weight is permuted({1, 0}). Packed at
/// construction in their own type, so that bf16 is half the memory and traffic; not needed afterwards. Biases are f32
/// or of the weight's type.
struct PackedMatmulWeights {
  ConstTensorView weight;     ///< [N, K]
  ConstTensorView bias;       ///< [N]; may be absent
  ConstTensorView gate;       ///< [N, K], type of weight; present: it is activated, and multiplies the product
  ConstTensorView gate_bias;  ///< [N]; may be absent
};

/// The tensors of one call, f32, innermost stride 1.
struct PackedMatmulArgs {
  ConstTensorView x;         ///< [M, K], any M
  ConstTensorView residual;  ///< [M, N], added last; may be out
  TensorView out;            ///< [M, N], apart from x
};

/// out = activation(x·Wᵀ + bias) + residual, or activation(x·Gᵀ + gate_bias)·(x·Wᵀ + bias) + residual.
///
/// Numerics: sums of 128 products in f32, then the sums of those: |error| ≤ ε·(√128 + K/128)·Σ|x·w| for random signs,
/// ε·(128 + K/128)·Σ|x·w| at most. Weights in bf16 give the bits of the same numbers in f32. An element's bits depend
/// on its own row and column alone: not on M, strides or the number of threads.
/// Throws Error kInvalidArgument naming the argument and both numbers before anything is written; the constructor also
/// kOutOfMemory. Thread-safe with distinct workspaces; run allocates nothing and plans nothing.
/// Cost: 2·M·N·K flops, twice that with a gate.
class HEADWAY_API PackedMatmul {
 public:
  PackedMatmul(const PackedMatmulSpec& spec, const PackedMatmulWeights& weights);
  ~PackedMatmul();
  PackedMatmul(PackedMatmul&&) noexcept;
  PackedMatmul& operator=(PackedMatmul&&) noexcept;

  const PackedMatmulSpec& spec() const;
  /// SIMD target, panels, bytes.
  std::string explain() const;
  std::size_t workspace_bytes(int workers) const;
  /// Throws what run() would throw for these arguments.
  void check(const PackedMatmulArgs& args) const;
  /// `workspace` is 64-byte aligned and holds workspace_bytes(threads.workers()); null when that is 0.
  void run(const PackedMatmulArgs& args, std::byte* workspace, const Threads& threads,
           Profiler* profiler = nullptr) const;

 private:
  struct HEADWAY_PRIVATE Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace headway
