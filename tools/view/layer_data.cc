// See layer_data.h.
#include "tools/view/layer_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "headway/attention_probabilities.h"
#include "ops/attention/bias.h"
#include "ops/attention/visibility.h"
#include "ops/base/hidden_score.h"
#include "ops/base/numeric.h"
#include "tools/heads/report.h"
#include "tools/view/bytes.h"

namespace headway::tools {
namespace {

using nlohmann::json;

constexpr std::int64_t kThumbnailCells = 48;
constexpr std::uint8_t kHiddenCell = 255;  // a cell that is no probability; 254 is a probability of 1
constexpr std::int64_t kRows = 16;         // of a tile
constexpr std::int64_t kFixedBytes = 3;

/// Of one batch entry.
struct Source {
  const AttentionSpec& spec;
  const AttentionArgs& args;
  std::int64_t batch;
  std::int64_t kv_heads() const { return *spec.num_kv_heads; }
};

float element(const ConstTensorView& view, std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
  const Dims& strides = view.strides;
  const std::int64_t at = b * strides[0] + h * strides[1] + s * strides[2] + d * strides[3];
  return view.type == DataType::kBF16 ? widen(view.as<BFloat16>()[at]) : view.as<float>()[at];
}

/// Rows of one head [S, D], times a scale.
std::vector<float> rows_of(const ConstTensorView& view, std::int64_t b, std::int64_t h, float scale) {
  std::vector<float> rows;
  rows.reserve(static_cast<std::size_t>(view.dims[2] * view.dims[3]));
  for (std::int64_t s = 0; s < view.dims[2]; ++s) {
    for (std::int64_t d = 0; d < view.dims[3]; ++d) rows.push_back(scale * element(view, b, h, s, d));
  }
  return rows;
}

bool all_finite(const Source& source) {
  const auto finite = [&](const ConstTensorView& view, std::int64_t heads, float scale) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (const float x : rows_of(view, source.batch, h, scale)) {
        if (!std::isfinite(x)) return false;
      }
    }
    return true;
  };
  return finite(source.args.query, source.spec.num_heads, *source.spec.scale) &&
         finite(source.args.key, source.kv_heads(), 1);
}

/// Elements as whole multiples of 2^(exponent − 23), the exponent of each row apart: within 2^−24 of the row's largest
/// power of two.
void add_fixed(const std::vector<float>& rows, std::int64_t width, Payload* payload, std::vector<int>* exponents) {
  for (std::size_t begin = 0; begin < rows.size(); begin += static_cast<std::size_t>(width)) {
    float largest = 0;
    for (std::int64_t d = 0; d < width; ++d) {
      largest = std::max(largest, std::abs(rows[begin + static_cast<std::size_t>(d)]));
    }
    int exponent = -100;
    if (largest > 0) std::frexp(largest, &exponent);
    exponent = std::max(exponent, -100);
    exponents->push_back(exponent);
    constexpr std::int32_t kMost = (1 << 23) - 1;
    for (std::int64_t d = 0; d < width; ++d) {
      const double units = std::ldexp(static_cast<double>(rows[begin + static_cast<std::size_t>(d)]), 23 - exponent);
      payload->add_24_bits(std::clamp(static_cast<std::int32_t>(std::lround(units)), -kMost, kMost));
    }
  }
}

json add_exponents(const std::vector<int>& exponents, Payload* payload) {
  const std::size_t begin = payload->size();
  for (const int exponent : exponents)
    payload->add(static_cast<std::uint8_t>(static_cast<std::int8_t>(std::clamp(exponent, -127, 127))));
  return payload->part(begin);
}

void add_query_and_key(const Source& source, Payload* payload, json* parts) {
  const auto add = [&](const char* name, const ConstTensorView& view, std::int64_t heads, float scale) {
    std::vector<int> exponents;
    const std::size_t begin = payload->size();
    for (std::int64_t h = 0; h < heads; ++h) {
      add_fixed(rows_of(view, source.batch, h, scale), source.spec.head_dim, payload, &exponents);
    }
    (*parts)[name] = payload->part(begin);
    (*parts)[std::string(name) + "_exponents"] = add_exponents(exponents, payload);
  };
  add("query", source.args.query, source.spec.num_heads, *source.spec.scale);
  add("key", source.args.key, source.kv_heads(), 1);
  const std::size_t begin = payload->size();
  const Dims& strides = source.args.log_sum_exp.strides;
  for (std::int64_t h = 0; h < source.spec.num_heads; ++h) {
    for (std::int64_t i = 0; i < source.spec.query_len; ++i) {
      payload->add(source.args.log_sum_exp.as<float>()[source.batch * strides[0] + h * strides[1] + i * strides[2]]);
    }
  }
  (*parts)["log_sum_exp"] = payload->part(begin);
}

/// Calls use(first row, rows, tile of [rows, Skv]) for a head.
template <class Use>
void each_tile(const Source& source, std::int64_t head, Use use) {
  std::vector<float> tile(static_cast<std::size_t>(kRows * source.spec.key_len));
  for (std::int64_t i = 0; i < source.spec.query_len; i += kRows) {
    const std::int64_t rows = std::min(kRows, source.spec.query_len - i);
    attention_probabilities(source.spec, source.args, {source.batch, head, i, i + rows, 0, source.spec.key_len},
                            view_of(tile.data(), Dims{rows, source.spec.key_len}));
    use(i, rows, tile.data());
  }
}

void add_probabilities(const Source& source, Payload* payload, json* parts) {
  const std::size_t begin = payload->size();
  for (std::int64_t h = 0; h < source.spec.num_heads; ++h) {
    each_tile(source, h, [&](std::int64_t, std::int64_t rows, const float* tile) {
      for (std::int64_t n = 0; n < rows * source.spec.key_len; ++n) payload->add(tile[n]);
    });
  }
  (*parts)["rows"] = payload->part(begin);
}

/// Keys [begin, end) that each row sees by the integer rules, besides those from tail_begin on.
json add_visible(const Source& source, Payload* payload) {
  const std::size_t begin = payload->size();
  const Visibility visibility(source.spec, source.args, source.batch);
  for (std::int64_t i = 0; i < source.spec.query_len; ++i) {
    const KeyRange seen = visibility.row(i);
    payload->add(static_cast<std::int32_t>(seen.begin));
    payload->add(static_cast<std::int32_t>(std::max(seen.begin, seen.end)));
  }
  return payload->part(begin);
}

/// The masks of a head: a first byte that says the kind, then rows of all keys: 0 a byte that is 1 where hidden, 1 a
/// float that is added.
std::string bias_bytes(const Source& source, const BiasSource& bias, std::int64_t head) {
  const std::int64_t keys = source.spec.key_len;
  const std::int64_t rows = bias.same_for_all_queries() ? 1 : source.spec.query_len;
  std::vector<float> values(static_cast<std::size_t>(rows * keys));
  bias.fill(source.batch, head, 0, rows, 0, keys, values.data(), keys);
  const bool only_hides =
      std::all_of(values.begin(), values.end(), [](float x) { return x == 0 || x == kHiddenScore; });
  Payload payload;
  for (const float value : values) {
    if (only_hides) {
      payload.add(static_cast<std::uint8_t>(value == kHiddenScore));
    } else {
      payload.add(value);
    }
  }
  return (only_hides ? '\0' : '\1') + payload.bytes();
}

json add_biases(const Source& source, SharedArrays* shared) {
  const BiasSource bias(source.spec, source.args);
  if (!bias.any()) return nullptr;
  json numbers = json::array();
  for (std::int64_t h = 0; h < source.spec.num_heads; ++h) {
    numbers.push_back(bias.same_for_all_heads() && h > 0 ? numbers[0].get<std::size_t>()
                                                         : shared->add(bias_bytes(source, bias, h)));
  }
  return numbers;
}

/// A cell of the thumbnails is the largest of its probabilities in 254 steps, or hidden where all of them are.
std::vector<std::uint8_t> thumbnail(const Source& source, std::int64_t head) {
  const std::int64_t queries = source.spec.query_len, keys = source.spec.key_len;
  const std::int64_t rows = thumbnail_cells(queries), columns = thumbnail_cells(keys);
  std::vector<float> most(static_cast<std::size_t>(rows * columns), -1);
  const BiasSource bias(source.spec, source.args);
  const Visibility visibility(source.spec, source.args, source.batch);
  std::vector<float> biases(static_cast<std::size_t>(keys));
  each_tile(source, head, [&](std::int64_t first, std::int64_t count, const float* tile) {
    for (std::int64_t r = 0; r < count; ++r) {
      if (bias.any()) bias.fill(source.batch, head, first + r, 1, 0, keys, biases.data(), keys);
      const KeyRange seen = visibility.row(first + r);
      for (std::int64_t j = 0; j < keys; ++j) {
        const bool hidden = (j < visibility.tail_begin() && (j < seen.begin || j >= seen.end)) ||
                            biases[static_cast<std::size_t>(j)] == kHiddenScore;
        if (hidden) continue;
        float& cell = most[static_cast<std::size_t>((first + r) * rows / queries * columns + j * columns / keys)];
        cell = std::max(cell, tile[r * keys + j]);
      }
    }
  });
  std::vector<std::uint8_t> cells;
  for (const float p : most) cells.push_back(p < 0 ? kHiddenCell : static_cast<std::uint8_t>(std::lround(254 * p)));
  return cells;
}

std::string thumbnails(const Source& source, const Threads& threads) {
  std::vector<std::vector<std::uint8_t>> cells(static_cast<std::size_t>(source.spec.num_heads));
  threads.parallel_for(source.spec.num_heads,
                       [&](std::int64_t h, int) { cells[static_cast<std::size_t>(h)] = thumbnail(source, h); });
  std::string bytes;
  for (const std::vector<std::uint8_t>& head : cells) bytes.append(head.begin(), head.end());
  return bytes;
}

}  // namespace

std::size_t SharedArrays::add(const std::string& bytes) {
  const auto [place, is_new] = known_.emplace(bytes, arrays_.size());
  if (is_new) arrays_.push_back(bytes);
  return place->second;
}

std::int64_t thumbnail_cells(std::int64_t length) { return std::min(length, kThumbnailCells); }

LayerData layer_data(const ShownAttention& shown, std::int64_t batch, const std::vector<HeadMeasures>& heads,
                     SharedArrays* biases, const Threads& threads) {
  const AttentionSpec& spec = shown.seen.spec;
  const Source source{spec, shown.seen.args, batch};
  Payload payload;
  json parts;
  parts["visible"] = add_visible(source, &payload);
  const std::int64_t of_rows =
      spec.num_heads * spec.query_len * spec.key_len * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t of_fixed =
      (spec.num_heads * spec.query_len + source.kv_heads() * spec.key_len) * spec.head_dim * kFixedBytes;
  const bool as_rows = of_rows <= of_fixed || !all_finite(source);
  if (as_rows) {
    add_probabilities(source, &payload, &parts);
  } else {
    add_query_and_key(source, &payload, &parts);
  }
  json measured = json::array();
  for (std::size_t h = 0; h < heads.size(); ++h) measured.push_back(head_json(heads[h], h));
  const auto names = [](const std::vector<std::string>& tokens) { return tokens.empty() ? json() : json(tokens); };
  const json layer = {{"name", shown.seen.name},
                      {"op", shown.seen.op},
                      {"self", shown.positions.defined},
                      {"offset", shown.positions.offset},
                      {"queries", spec.query_len},
                      {"keys", spec.key_len},
                      {"keys_with_positions", shown.positions.keys},
                      {"query_tokens", names(shown.tokens.queries)},
                      {"key_tokens", names(shown.tokens.keys)},
                      {"head_dim", spec.head_dim},
                      {"kv_heads", source.kv_heads()},
                      {"softcap", spec.softcap},
                      {"encoding", as_rows ? "rows" : "query_key"},
                      {"thumbnail_cells", {thumbnail_cells(spec.query_len), thumbnail_cells(spec.key_len)}},
                      {"biases", add_biases(source, biases)},
                      {"parts", parts},
                      {"heads", measured}};
  return {layer.dump(-1, ' ', false, json::error_handler_t::replace), payload.bytes(), thumbnails(source, threads)};
}

}  // namespace headway::tools
