// Whether oneDNN's bf16 products may be believed: some releases returned corrupt ones on some CPUs. Decides by
// multiplying and comparing with a scalar loop; knows neither oneDNN nor who asks.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "headway/tensor.h"

namespace headway::onednn {

/// One product to check a path on: c = a·bᵀ + bias.
struct Bf16Problem {
  std::int64_t rows, columns, depth;
  std::vector<BFloat16> a;  // [M, K]
  std::vector<BFloat16> b;  // [N, K]
  std::vector<float> bias;  // [N]
};

/// Multiplies one problem its own way into c [M, N], which starts as NaN.
using Bf16Product = std::function<void(const Bf16Problem& problem, float* c)>;

/// Empty when `product` is right on a few odd shapes and a typical one; otherwise one line about the first element that
/// is not. An Error that it throws counts as a fault.
std::string bf16_product_fault(const Bf16Product& product);

/// The verdict on one path: reached on the first question, kept, and said on the standard error once when it is bad.
/// Thread-safe.
class Bf16SelfCheck {
 public:
  /// `path` names it in the message.
  Bf16SelfCheck(const char* path, Bf16Product product) : path_(path), product_(std::move(product)) {}
  /// Why the path must not be used; empty: it may.
  const std::string& refusal();

 private:
  const char* path_;
  Bf16Product product_;
  std::once_flag once_;
  std::string refusal_;
};

/// The paths of this process. Both refuse on a CPU that has no bf16 products, without a word.
/// Weights in a layout of oneDNN's own, result bf16: projections.
const std::string& packed_bf16_refusal();
/// Plain operands, b as it is or transposed, result f32, also added to what is there: tiles.
const std::string& plain_bf16_refusal();

}  // namespace headway::onednn
