// Data by splitmix of (sequence, position, head, column); the oracle gathers keys by their positions in plain loops.
#include "tests/ops/cached_attention/cached_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "ops/base/narrow.h"
#include "ops/base/numeric.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

float datum(std::uint64_t kind, std::uint64_t id, std::int64_t position, std::int64_t head, std::int64_t column) {
  const auto mixed = static_cast<std::uint64_t>(((position * 64 + head) * 1024 + column) * 8) + kind;
  // About normal, of variance 1: four uniform numbers out of 64 bits.
  std::uint64_t bits = Random(mixed * 0x9e3779b97f4a7c15ULL ^ (id * 0xd1342543de82ef95ULL)).next();
  float sum = 0;
  for (int i = 0; i < 4; ++i, bits >>= 16) sum += static_cast<float>(bits & 0xFFFF);
  return (sum * 0x1p-16f - 2) * 1.7320508f;
}

void write(const TensorView& view, std::int64_t at, float value) {
  if (view.type == DataType::kBF16) {
    reinterpret_cast<BFloat16*>(view.data)[at] = to_bfloat16(value);
  } else if (view.type == DataType::kF16) {
    reinterpret_cast<Float16*>(view.data)[at] = to_float16(value);
  } else {
    reinterpret_cast<float*>(view.data)[at] = value;
  }
}

/// NaN in every float type.
void poison(AlignedBuffer* memory) { std::memset(memory->data(), 0xFF, memory->size_bytes()); }

}  // namespace

float cached_element(const ConstTensorView& view, std::int64_t at) {
  if (view.type == DataType::kBF16) return widen(view.as<BFloat16>()[at]);
  if (view.type == DataType::kF16) return widen(view.as<Float16>()[at]);
  return view.as<float>()[at];
}

CachedCase::CachedCase(const CachedShape& shape) : shape_(shape) {
  CachedAttentionSpec& spec = shape_.spec;
  if (!spec.num_kv_heads) spec.num_kv_heads = spec.num_heads;
  if (!spec.value_head_dim) spec.value_head_dim = spec.head_dim;
  starts_.push_back(0);
  for (const CachedSequence& s : shape_.sequences) {
    tokens_ += s.tokens;
    starts_.push_back(static_cast<std::int32_t>(tokens_));
    lengths_.push_back(static_cast<std::int32_t>(s.length));
    rows_ = std::max(rows_, s.length);
  }
  const auto batch = static_cast<std::int64_t>(shape_.sequences.size());
  spec.max_batch = std::max(spec.max_batch, batch);
  spec.max_tokens = std::max(spec.max_tokens, tokens_);
  spec.max_cache = std::max(spec.max_cache, rows_);
  make_data();
  place();
  fill_cache();
  query_memory_ =
      AlignedBuffer(tensor_bytes(spec.type, {std::max<std::int64_t>(tokens_, 1), spec.num_heads, spec.head_dim}));
  query_ = {query_memory_.data(), spec.type, {tokens_, spec.num_heads, spec.head_dim}};
  out_memory_ = AlignedBuffer(
      tensor_bytes(spec.type, {std::max<std::int64_t>(tokens_, 1), spec.num_heads, *spec.value_head_dim}));
  out_ = shape_.out_is_query
             ? query_
             : TensorView(out_memory_.data(), spec.type, {tokens_, spec.num_heads, *spec.value_head_dim});
  fill_query();
  fill_biases();
}

void CachedCase::place() {
  const CachedAttentionSpec& spec = shape_.spec;
  const auto batch = static_cast<std::int64_t>(shape_.sequences.size());
  Random random(batch * 31 + shape_.block);
  std::int64_t outer = batch, rows = shape_.ring > 0 ? shape_.ring : rows_ + 2;
  if (shape_.block > 0) {
    const std::int64_t positions = shape_.ring > 0 ? shape_.ring : rows_;
    table_width_ = std::max<std::int64_t>((positions + shape_.block - 1) / shape_.block, 1);
    rows = shape_.block;
    outer = batch * table_width_ + 2;
    // Blocks in any order, two of them nobody's; entries beyond a sequence's length are garbage.
    std::vector<std::int32_t> blocks;
    for (std::int64_t i = 0; i < outer; ++i) blocks.push_back(static_cast<std::int32_t>(i));
    for (std::size_t i = blocks.size(); i > 1; --i) {
      std::swap(blocks[i - 1], blocks[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
    }
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t used = shape_.ring > 0 ? positions : shape_.sequences[static_cast<std::size_t>(b)].length;
      for (std::int64_t i = 0; i < table_width_; ++i) {
        table_.push_back(i * shape_.block < used ? blocks[static_cast<std::size_t>(b * table_width_ + i)] : -7);
      }
    }
  } else if (shape_.slots) {
    outer = batch + 3;
    for (std::int64_t b = 0; b < batch; ++b) slots_.push_back(static_cast<std::int32_t>(outer - 1 - b));
  }
  const auto cache_view = [&](AlignedBuffer* memory, std::int64_t columns) {
    *memory = AlignedBuffer(
        std::max<std::size_t>(tensor_bytes(spec.cache_type, {outer, *spec.num_kv_heads, rows, columns}), 64));
    poison(memory);
    if (!shape_.heads_inside) {
      return TensorView(memory->data(), spec.cache_type, {outer, *spec.num_kv_heads, rows, columns});
    }
    return TensorView(memory->data(), spec.cache_type, {outer, rows, *spec.num_kv_heads, columns})
        .permuted({0, 2, 1, 3});
  };
  cache_.key = cache_view(&key_memory_, spec.head_dim);
  cache_.value = cache_view(&value_memory_, *spec.value_head_dim);
  if (!slots_.empty()) cache_.slots = view_of(slots_.data(), {batch});
  if (table_width_ > 0) cache_.block_table = view_of(table_.data(), {batch, table_width_});
  cache_.ring = shape_.ring > 0;
}

std::int64_t CachedCase::oldest(const CachedSequence& sequence) const {
  if (shape_.ring == 0) return 0;
  const std::int64_t capacity = shape_.block > 0 ? table_width_ * shape_.block : shape_.ring;
  return std::max<std::int64_t>(sequence.length - capacity, 0);
}

std::int64_t CachedCase::row_offset(const TensorView& view, std::size_t sequence, std::int64_t position,
                                    std::int64_t head) const {
  const std::int64_t rows = view.dims[2];
  const std::int64_t capacity = shape_.block > 0 ? table_width_ * rows : rows;
  const std::int64_t at = shape_.ring > 0 ? position % capacity : position;
  std::int64_t outer = static_cast<std::int64_t>(sequence), row = at;
  if (shape_.block > 0) {
    outer = table_[sequence * static_cast<std::size_t>(table_width_) + static_cast<std::size_t>(at / rows)];
    row = at % rows;
  } else if (!slots_.empty()) {
    outer = slots_[sequence];
  }
  return outer * view.strides[0] + head * view.strides[1] + row * view.strides[2];
}

void CachedCase::fill_cache() {
  for (std::size_t b = 0; b < shape_.sequences.size(); ++b) {
    const CachedSequence& s = shape_.sequences[b];
    for (std::int64_t p = oldest(s); p < s.length; ++p) {
      for (std::int64_t h = 0; h < *shape_.spec.num_kv_heads; ++h) {
        const std::int64_t key = row_offset(cache_.key, b, p, h), value = row_offset(cache_.value, b, p, h);
        for (std::int64_t d = 0; d < shape_.spec.head_dim; ++d) write(cache_.key, key + d, key_at(b, p, h, d));
        for (std::int64_t d = 0; d < *shape_.spec.value_head_dim; ++d)
          write(cache_.value, value + d, value_at(b, p, h, d));
      }
    }
  }
}

void CachedCase::write_row(const TensorView& view, std::size_t sequence, std::int64_t position, std::int64_t head,
                           float value) {
  for (std::int64_t d = 0; d < view.dims[3]; ++d) write(view, row_offset(view, sequence, position, head) + d, value);
}
void CachedCase::write_key(std::size_t sequence, std::int64_t position, std::int64_t kv_head, float value) {
  write_row(cache_.key, sequence, position, kv_head, value);
}
void CachedCase::write_value(std::size_t sequence, std::int64_t position, std::int64_t kv_head, float value) {
  write_row(cache_.value, sequence, position, kv_head, value);
}

void CachedCase::make_data() {
  const std::int64_t heads = *shape_.spec.num_kv_heads;
  const DataType type = shape_.spec.cache_type;
  for (const CachedSequence& s : shape_.sequences) {
    std::vector<float>& keys = keys_.emplace_back();
    std::vector<float>& values = values_.emplace_back();
    for (std::int64_t p = 0; p < s.length; ++p) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t d = 0; d < shape_.spec.head_dim; ++d) keys.push_back(rounded(type, datum(1, s.id, p, h, d)));
        for (std::int64_t d = 0; d < *shape_.spec.value_head_dim; ++d) {
          values.push_back(rounded(type, datum(2, s.id, p, h, d)));
        }
      }
    }
  }
}

float CachedCase::key_at(std::size_t b, std::int64_t p, std::int64_t head, std::int64_t d) const {
  const std::int64_t row = p * *shape_.spec.num_kv_heads + head;
  return keys_[b][static_cast<std::size_t>(row * shape_.spec.head_dim + d)];
}
float CachedCase::value_at(std::size_t b, std::int64_t p, std::int64_t head, std::int64_t d) const {
  const std::int64_t row = p * *shape_.spec.num_kv_heads + head;
  return values_[b][static_cast<std::size_t>(row * *shape_.spec.value_head_dim + d)];
}
float CachedCase::query_at(std::size_t b, std::int64_t p, std::int64_t head, std::int64_t d) const {
  return rounded(shape_.spec.type, 1.5f * datum(3, shape_.sequences[b].id, p, head, d));
}

void CachedCase::fill_query() {
  for (std::size_t b = 0; b < shape_.sequences.size(); ++b) {
    const CachedSequence& s = shape_.sequences[b];
    for (std::int64_t i = 0; i < s.tokens; ++i) {
      for (std::int64_t h = 0; h < shape_.spec.num_heads; ++h) {
        const std::int64_t row = (starts_[b] + i) * query_.strides[0] + h * query_.strides[1];
        for (std::int64_t d = 0; d < shape_.spec.head_dim; ++d)
          write(query_, row + d, query_at(b, s.length - s.tokens + i, h, d));
      }
    }
  }
}

float CachedCase::mask_at(std::size_t b, std::int64_t position, std::int64_t key) const {
  if (shape_.mask == CachedMask::kNone) return 0;
  const std::int64_t start = mask_starts_[b];
  if (key < start) return 0;
  if (key >= start + mask_width_) return -std::numeric_limits<float>::infinity();
  const float x = datum(4, shape_.sequences[b].id, position, 0, key);
  if (x < -0.8f && key != position) return -std::numeric_limits<float>::infinity();
  return shape_.mask == CachedMask::kFloat ? x : 0;
}

void CachedCase::fill_biases() {
  for (std::int64_t h = 0; h < shape_.spec.num_heads; ++h) {
    sinks_.push_back(datum(5, 0, 0, h, 0));
    slopes_.push_back(std::exp2(-8.0f * static_cast<float>(h + 1) / static_cast<float>(shape_.spec.num_heads)));
  }
  for (std::int64_t r = 0; r < kRelativePast + kRelativeFuture; ++r) {
    for (std::int64_t h = 0; h < shape_.spec.num_heads; ++h) relative_.push_back(datum(6, 0, r, h, 0));
  }
  log_sum_exp_.resize(static_cast<std::size_t>(tokens_ * shape_.spec.num_heads));
  if (shape_.mask == CachedMask::kNone) return;
  mask_width_ = 0;
  for (const CachedSequence& s : shape_.sequences) {
    mask_starts_.push_back(static_cast<std::int32_t>(shape_.tree ? std::max<std::int64_t>(s.length - s.tokens, 0) : 0));
    // All keys but the last of the longest, which a short mask hides.
    mask_width_ = std::max(mask_width_, shape_.tree ? s.tokens : s.length);
  }
  const std::int64_t bytes = (mask_width_ + 7) / 8;
  if (shape_.mask == CachedMask::kBits) mask_width_ = 8 * bytes;
  const bool bits = shape_.mask == CachedMask::kBits;
  byte_mask_.resize(static_cast<std::size_t>(tokens_ * (bits ? bytes : mask_width_)));
  float_mask_.resize(static_cast<std::size_t>(tokens_ * mask_width_));
  for (std::size_t b = 0; b < shape_.sequences.size(); ++b) {
    const CachedSequence& s = shape_.sequences[b];
    for (std::int64_t i = 0; i < s.tokens; ++i) {
      for (std::int64_t w = 0; w < mask_width_; ++w) {
        const float x = mask_at(b, s.length - s.tokens + i, mask_starts_[b] + w);
        const auto row = static_cast<std::size_t>(starts_[b] + i);
        const auto column = static_cast<std::size_t>(w);
        float_mask_[row * static_cast<std::size_t>(mask_width_) + column] = x;
        const bool open = std::isfinite(x);
        if (bits) {
          byte_mask_[row * static_cast<std::size_t>(bytes) + column / 8] |=
              static_cast<std::uint8_t>(open << (column % 8));
        } else {
          byte_mask_[row * static_cast<std::size_t>(mask_width_) + column] = open ? 1 : 0;
        }
      }
    }
  }
}

CachedAttentionArgs CachedCase::args() {
  const auto batch = static_cast<std::int64_t>(shape_.sequences.size());
  const std::int64_t heads = shape_.spec.num_heads;
  CachedAttentionArgs args;
  args.query = query_;
  if (shape_.query_starts) args.query_starts = view_of(std::as_const(starts_).data(), {batch + 1});
  args.lengths = view_of(std::as_const(lengths_).data(), {batch});
  args.cache = cache_;
  if (shape_.sinks) args.sinks = view_of(sinks_.data(), {heads});
  if (shape_.alibi) args.alibi_slopes = view_of(slopes_.data(), {heads});
  if (shape_.relative_bias) {
    args.relative_bias = view_of(relative_.data(), {kRelativePast + kRelativeFuture, heads});
    args.relative_bias_future = kRelativeFuture;
  }
  if (shape_.mask == CachedMask::kFloat) args.mask = view_of(float_mask_.data(), {tokens_, mask_width_});
  if (shape_.mask == CachedMask::kBits) args.mask = view_of(byte_mask_.data(), {tokens_, mask_width_ / 8});
  if (shape_.mask == CachedMask::kBool) {
    args.mask = {reinterpret_cast<const std::byte*>(byte_mask_.data()), DataType::kBool, {tokens_, mask_width_}};
  }
  if (shape_.mask != CachedMask::kNone) args.mask_starts = view_of(mask_starts_.data(), {batch});
  args.out = out_;
  args.log_sum_exp = view_of(log_sum_exp_.data(), {tokens_, heads});
  return args;
}

void CachedCase::run(const CachedAttention& attention, const Threads& threads) {
  const AlignedBuffer workspace(attention.workspace_bytes(threads.workers()));
  std::memset(workspace.data(), 0xFF, workspace.size_bytes());
  poison(&out_memory_);
  fill_query();
  std::fill(log_sum_exp_.begin(), log_sum_exp_.end(), std::numeric_limits<float>::quiet_NaN());
  attention.run(args(), workspace.data(), threads);
}

void CachedCase::run(const Threads& threads) { run(CachedAttention(shape_.spec), threads); }

std::vector<float> CachedCase::out() const {
  std::vector<float> values;
  for (std::int64_t i = 0; i < out_.count(); ++i) values.push_back(cached_element(out_, i));
  return values;
}

std::int64_t CachedCase::first_token(std::size_t sequence) const { return starts_[sequence]; }

}  // namespace headway::testing
