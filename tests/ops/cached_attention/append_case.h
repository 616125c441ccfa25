// A call of append() with memory of its own, and what must be in the cache and the query afterwards, in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headway/kv_cache.h"
#include "ops/base/numeric.h"
#include "tests/ops/cached_attention/cached_case.h"
#include "tests/support/random_data.h"

namespace headway::testing {

inline Tensor random_tensor(DataType type, const Dims& dims, Random& random) {
  Tensor tensor(type, dims);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const float x = random.normal();
    if (type == DataType::kBF16) {
      tensor.data<BFloat16>()[i] = to_bfloat16(x);
    } else if (type == DataType::kF16) {
      tensor.data<Float16>()[i] = to_float16(x);
    } else {
      tensor.data<float>()[i] = x;
    }
  }
  return tensor;
}

inline ConstTensorView read_only(const Tensor& tensor) { return tensor.view(); }

struct AppendShape {
  DataType type = DataType::kF32, cache_type = DataType::kF32;
  std::int64_t heads = 4, kv_heads = 2, head_dim = 20, value_dim = 12, rotary_dim = 0;
  bool interleaved = false;
  bool norm = false, across = false, weights = false;
  float offset = 0;
  std::vector<std::int32_t> starts = {0, 3, 4, 4, 9}, lengths = {5, 12, 3, 9};
  std::int64_t block = 0, ring = 0;
  bool positions = false;
};

/// A call and the cache it writes to, which is NaN before.
class AppendCase {
 public:
  explicit AppendCase(const AppendShape& shape) : s_(shape) {
    Random random(7);
    const std::int64_t tokens = s_.starts.back();
    const auto batch = static_cast<std::int64_t>(s_.lengths.size());
    key_ = random_tensor(s_.type, {tokens, s_.kv_heads, s_.head_dim}, random);
    value_ = random_tensor(s_.type, {tokens, s_.kv_heads, s_.value_dim}, random);
    query_ = random_tensor(s_.type, {tokens, s_.heads, s_.head_dim}, random);
    given_query_ = random_tensor(s_.type, {tokens, s_.heads, s_.head_dim}, random);
    copy_elements(read_only(query_), given_query_.view());
    const std::int64_t width = s_.across ? s_.head_dim : 0;
    key_weight_ = random_tensor(DataType::kF32, {s_.across ? width * s_.kv_heads : s_.head_dim}, random);
    query_weight_ = random_tensor(DataType::kF32, {s_.across ? width * s_.heads : s_.head_dim}, random);
    const std::int64_t rows = s_.block > 0 ? s_.block : s_.ring > 0 ? s_.ring : 14;
    const std::int64_t blocks = (14 + rows - 1) / rows;
    const std::int64_t outer = s_.block > 0 ? batch * blocks : batch;
    for (std::int64_t i = outer; i > 0 && s_.block > 0; --i) table_.push_back(static_cast<std::int32_t>(i - 1));
    cache_key_ = Tensor(s_.cache_type, {outer, s_.kv_heads, rows, s_.head_dim});
    cache_value_ = Tensor(s_.cache_type, {outer, s_.kv_heads, rows, s_.value_dim});
    std::memset(cache_key_.view().data, 0xFF, tensor_bytes(s_.cache_type, cache_key_.dims()));
    std::memset(cache_value_.view().data, 0xFF, tensor_bytes(s_.cache_type, cache_value_.dims()));
    cache.key = cache_key_.view();
    cache.value = cache_value_.view();
    if (s_.block > 0) cache.block_table = view_of(std::as_const(table_).data(), {batch, blocks});
    cache.ring = s_.ring > 0;
    if (s_.rotary_dim > 0) {
      RotarySpec rotary;
      rotary.rotary_dim = s_.rotary_dim;
      rotary.positions = 64;
      rotary.interleaved = s_.interleaved;
      table_of_angles_.emplace(rotary);
    }
    for (std::int64_t t = 0; t < tokens; ++t) positions_.push_back(static_cast<std::int32_t>(40 - t));
    args.key = read_only(key_);
    args.value = read_only(value_);
    args.query = query_.view();
    args.query_starts = view_of(std::as_const(s_.starts).data(), {batch + 1});
    args.lengths = view_of(std::as_const(s_.lengths).data(), {batch});
    if (s_.positions) args.positions = view_of(std::as_const(positions_).data(), {tokens});
    if (s_.rotary_dim > 0) args.rotary = &*table_of_angles_;
    args.norm.enabled = s_.norm;
    args.norm.across_heads = s_.across;
    args.norm.weight_offset = s_.offset;
    if (s_.weights) {
      args.norm.key_weight = read_only(key_weight_);
      args.norm.query_weight = read_only(query_weight_);
    }
  }

  void run(const Threads& threads = Threads::serial()) { append(args, cache, threads); }

  /// Every row is where it belongs with what it should be, and every other row is still NaN.
  void check(const std::string& what) {
    std::map<std::int64_t, bool> written;  // by outer · rows + row
    const std::int64_t rows = cache.key.dims[2];
    const auto batch = static_cast<std::int64_t>(s_.lengths.size());
    for (std::int64_t b = 0; b < batch; ++b) {
      const auto at = static_cast<std::size_t>(b);
      const std::int64_t count = s_.starts[at + 1] - s_.starts[at];
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t token = s_.starts[at] + i, p = s_.lengths[at] - count + i;
        const std::int64_t angle = s_.positions ? 40 - token : p;
        for (std::int64_t h = 0; h < s_.heads; ++h) {
          check_row(given_query_, query_, token, h, s_.heads, query_weight_, angle, what + ", query");
        }
        if (s_.ring > 0 && p < s_.lengths[at] - s_.ring) continue;
        std::int64_t outer = b, row = s_.ring > 0 ? p % rows : p;
        if (s_.block > 0) {
          outer = table_[static_cast<std::size_t>(b * cache.block_table.dims[1] + p / rows)];
          row = p % rows;
        }
        written[outer * rows + row] = true;
        for (std::int64_t h = 0; h < s_.kv_heads; ++h) check_cached(token, h, angle, outer, row, what);
      }
    }
    for (std::int64_t outer = 0; outer < cache.key.dims[0]; ++outer) {
      for (std::int64_t row = 0; row < rows; ++row) {
        if (written.count(outer * rows + row) != 0) continue;
        for (std::int64_t h = 0; h < s_.kv_heads; ++h) {
          ASSERT_TRUE(
              std::isnan(cached_element(cache_key_.view(), ((outer * s_.kv_heads + h) * rows + row) * s_.head_dim)))
              << what;
          ASSERT_TRUE(
              std::isnan(cached_element(cache_value_.view(), ((outer * s_.kv_heads + h) * rows + row) * s_.value_dim)))
              << what;
        }
      }
    }
  }

  AppendArgs args;
  KvCache cache;

 private:
  /// Head `head` of a token as it should become, in double.
  std::vector<double> expected(const Tensor& from, std::int64_t token, std::int64_t head, std::int64_t heads,
                               const Tensor& weight, std::int64_t position) const {
    std::vector<double> x;
    double squares = 0;
    for (std::int64_t d = 0; d < s_.head_dim; ++d)
      x.push_back(cached_element(from.view(), (token * heads + head) * s_.head_dim + d));
    const std::int64_t first = s_.across ? token * heads * s_.head_dim : (token * heads + head) * s_.head_dim;
    const std::int64_t count = s_.across ? heads * s_.head_dim : s_.head_dim;
    for (std::int64_t i = 0; i < count; ++i) squares += std::pow(cached_element(from.view(), first + i), 2);
    for (std::int64_t d = 0; d < s_.head_dim && s_.norm; ++d) {
      double& element = x[static_cast<std::size_t>(d)];
      element /= std::sqrt(squares / static_cast<double>(count) + 1e-6);
      if (s_.weights) element *= s_.offset + weight.data<float>()[(s_.across ? head * s_.head_dim : 0) + d];
    }
    const std::int64_t pairs = s_.rotary_dim / 2;
    for (std::int64_t k = 0; k < pairs; ++k) {
      const double angle =
          static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(k) / static_cast<double>(pairs));
      double& a = x[static_cast<std::size_t>(s_.interleaved ? 2 * k : k)];
      double& b = x[static_cast<std::size_t>(s_.interleaved ? 2 * k + 1 : k + pairs)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + a * std::sin(angle);
      a = turned;
    }
    return x;
  }
  void check_row(const Tensor& from, const Tensor& got, std::int64_t token, std::int64_t head, std::int64_t heads,
                 const Tensor& weight, std::int64_t position, const std::string& what) const {
    const std::vector<double> want = expected(from, token, head, heads, weight, position);
    for (std::int64_t d = 0; d < s_.head_dim; ++d) {
      const double x = want[static_cast<std::size_t>(d)];
      ASSERT_NEAR(cached_element(got.view(), (token * heads + head) * s_.head_dim + d), x,
                  4e-6 + 1.01 * half_step(got.type(), x))
          << what << " token " << token << ", head " << head << ", column " << d;
    }
  }
  void check_cached(std::int64_t token, std::int64_t head, std::int64_t position, std::int64_t outer, std::int64_t row,
                    const std::string& what) const {
    const std::vector<double> want = expected(key_, token, head, s_.kv_heads, key_weight_, position);
    const std::int64_t at = (outer * s_.kv_heads + head) * cache.key.dims[2] + row;
    for (std::int64_t d = 0; d < s_.head_dim; ++d) {
      const double x = want[static_cast<std::size_t>(d)];
      ASSERT_NEAR(cached_element(cache_key_.view(), at * s_.head_dim + d), x, 4e-6 + 1.01 * half_step(s_.cache_type, x))
          << what << ", key of token " << token << ", head " << head << ", column " << d;
    }
    for (std::int64_t d = 0; d < s_.value_dim; ++d) {
      const float x = cached_element(value_.view(), (token * s_.kv_heads + head) * s_.value_dim + d);
      ASSERT_NEAR(cached_element(cache_value_.view(), at * s_.value_dim + d), x, 1.01 * half_step(s_.cache_type, x))
          << what;
    }
  }

  AppendShape s_;
  Tensor key_, value_, query_, given_query_, key_weight_, query_weight_, cache_key_, cache_value_;
  std::vector<std::int32_t> table_, positions_;
  std::optional<RotaryTable> table_of_angles_;
};

}  // namespace headway::testing
