// What a spec may say, and what it means where it says nothing.
#include "ops/cached_attention/spec.h"

#include <cmath>

#include "runtime/base/check.h"

namespace headway {
namespace {

/// Limits of keys are 32-bit in the kernels, and windows are added to positions.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 30;

void check_size(const char* field, std::int64_t value, std::int64_t least) {
  require(value >= least, field, " is ", value, ", expected at least ", least);
  require(value <= kLargestSize, field, " is ", value, ", expected at most ", kLargestSize);
}

void check_type(const char* field, DataType type) {
  if (is_row_type(type)) return;
  const char* const later = type == DataType::kI8 ? " yet" : "";
  fail(ErrorCode::kUnsupported, field, " is ", type_name(type), ", which is not supported", later,
       ", expected f32, bf16 or f16");
}

/// The same window with an end that reaches beyond every position open.
std::int64_t window_end(const char* field, std::int64_t value) {
  require(value >= Window::kOpen, field, " is ", value, ", expected at least -1");
  return value >= kLargestSize ? Window::kOpen : value;
}

}  // namespace

CachedAttentionSpec complete_spec(const CachedAttentionSpec& spec) {
  CachedAttentionSpec complete = spec;
  check_type("type", spec.type);
  check_type("cache_type", spec.cache_type);
  const std::int64_t kv_heads = spec.num_kv_heads.value_or(spec.num_heads);
  complete.num_kv_heads = kv_heads;
  complete.value_head_dim = spec.value_head_dim.value_or(spec.head_dim);
  check_size("num_heads", spec.num_heads, 1);
  check_size("num_kv_heads", kv_heads, 1);
  check_size("head_dim", spec.head_dim, 1);
  check_size("value_head_dim", *complete.value_head_dim, 1);
  check_size("max_batch", spec.max_batch, 0);
  check_size("max_tokens", spec.max_tokens, 0);
  check_size("max_cache", spec.max_cache, 0);
  require(spec.num_heads % kv_heads == 0, "num_heads is ", spec.num_heads,
          ", expected a multiple of num_kv_heads = ", kv_heads);
  if (!complete.scale) complete.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_dim)));
  require(std::isfinite(*complete.scale), "scale is ", *complete.scale, ", expected a finite number");
  require(std::isfinite(spec.softcap) && spec.softcap >= 0, "softcap is ", spec.softcap,
          ", expected a finite number of at least 0");
  complete.window = {.left = window_end("window.left", spec.window.left),
                     .right = window_end("window.right", spec.window.right)};
  return complete;
}

}  // namespace headway
