// What a spec may say, and what it means where it says nothing. Knows no tensors and no implementation.
#include "ops/attention/spec.h"

#include <cmath>

#include "runtime/base/check.h"

namespace headway {
namespace {

/// No dimension and no window reaches this, so that sums of a few of them cannot overflow.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;

void require_size(const char* field, std::int64_t value) {
  require(value >= 0, field, " is ", value, ", expected at least 0");
  require(value <= kLargestSize, field, " is ", value, ", expected at most ", kLargestSize);
}

void check_sizes(const AttentionSpec& spec) {
  require_size("batch", spec.batch);
  require_size("num_heads", spec.num_heads);
  require_size("num_kv_heads", *spec.num_kv_heads);
  require_size("query_len", spec.query_len);
  require_size("key_len", spec.key_len);
  require_size("head_dim", spec.head_dim);
  require_size("value_head_dim", *spec.value_head_dim);
  require_size("always_visible_keys", spec.always_visible_keys);
  require(spec.always_visible_keys <= spec.key_len, "always_visible_keys is ", spec.always_visible_keys,
          ", expected at most key_len = ", spec.key_len);
}

void check_scores_output(const AttentionSpec& spec) {
  require(spec.scores_output != ScoresOutput::kMeanProbabilities || spec.num_heads > 0, "num_heads is ", spec.num_heads,
          ", expected at least 1 for a mean over heads");
}

void check_numbers(const AttentionSpec& spec) {
  require(std::isfinite(*spec.scale), "scale is ", *spec.scale, ", expected a finite number");
  require(std::isfinite(spec.softcap) && spec.softcap >= 0, "softcap is ", spec.softcap,
          ", expected a finite number of at least 0");
  require(spec.window.left >= Window::kOpen, "window.left is ", spec.window.left, ", expected at least -1");
  require(spec.window.right >= Window::kOpen, "window.right is ", spec.window.right, ", expected at least -1");
}

}  // namespace

AttentionSpec complete_spec(const AttentionSpec& spec) {
  AttentionSpec complete = spec;
  if (spec.type != DataType::kF32 && spec.type != DataType::kBF16) {
    fail(ErrorCode::kUnsupported, "attention in ", type_name(spec.type), " is not supported, expected f32 or bf16");
  }
  const std::int64_t kv_heads = spec.num_kv_heads.value_or(spec.num_heads);
  complete.num_kv_heads = kv_heads;
  complete.value_head_dim = spec.value_head_dim.value_or(spec.head_dim);
  check_sizes(complete);
  require(kv_heads == complete.num_heads || (kv_heads > 0 && complete.num_heads % kv_heads == 0), "num_heads is ",
          complete.num_heads, ", expected a multiple of num_kv_heads = ", kv_heads);
  if (!complete.scale) {
    // With no dims to sum over every score is 0 whatever the scale.
    complete.scale = spec.head_dim > 0 ? static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_dim))) : 1.0f;
  }
  check_numbers(complete);
  check_scores_output(complete);
  // A window that wide is open; so position minus window stays within 63 bits.
  if (complete.window.left > kLargestSize) complete.window.left = Window::kOpen;
  if (complete.window.right > kLargestSize) complete.window.right = Window::kOpen;
  return complete;
}

bool takes_offsets(const AttentionSpec& spec) {
  if (spec.causal == Causal::kOffset) return true;
  return spec.causal == Causal::kNone && (spec.window.left >= 0 || spec.window.right >= 0);
}

}  // namespace headway
