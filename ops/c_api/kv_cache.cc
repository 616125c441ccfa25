// The C API's cache, rotation and appending.
#include "ops/c_api/kv_cache.h"

#include <cmath>
#include <limits>
#include <memory>

#include "ops/c_api/guarded.h"
#include "ops/c_api/handles.h"
#include "ops/c_api/structs.h"
#include "ops/c_api/views.h"

using namespace headway;         // NOLINT: functions of the C API are in no namespace
using namespace headway::c_api;  // NOLINT

namespace {

headway_rotary_spec default_rotary_spec() noexcept {
  headway_rotary_spec spec{};
  const RotaryScaling scaling;
  spec.base = RotarySpec().base;
  spec.factor = scaling.factor;
  spec.beta_fast = scaling.beta_fast;
  spec.beta_slow = scaling.beta_slow;
  spec.attention_factor = std::numeric_limits<double>::quiet_NaN();
  spec.low_freq_factor = scaling.low_freq_factor;
  spec.high_freq_factor = scaling.high_freq_factor;
  return spec;
}

headway_append_args default_append_args() noexcept {
  headway_append_args args{};
  args.norm_epsilon = HeadNorm().epsilon;
  return args;
}

static_assert(static_cast<int>(RotaryScaling::Kind::kLinear) == HEADWAY_ROTARY_SCALING_LINEAR);
static_assert(static_cast<int>(RotaryScaling::Kind::kNtk) == HEADWAY_ROTARY_SCALING_NTK);
static_assert(static_cast<int>(RotaryScaling::Kind::kYarn) == HEADWAY_ROTARY_SCALING_YARN);
static_assert(static_cast<int>(RotaryScaling::Kind::kLlama3) == HEADWAY_ROTARY_SCALING_LLAMA3);

RotarySpec rotary_spec_of(const headway_rotary_spec& given) {
  require(given.scaling >= HEADWAY_ROTARY_SCALING_NONE && given.scaling <= HEADWAY_ROTARY_SCALING_LLAMA3, "scaling is ",
          given.scaling, ", expected 0 to ", HEADWAY_ROTARY_SCALING_LLAMA3);
  RotarySpec spec;
  spec.rotary_dim = given.rotary_dim;
  spec.positions = given.positions;
  spec.base = given.base;
  spec.interleaved = given.interleaved != 0;
  spec.scaling.kind = static_cast<RotaryScaling::Kind>(given.scaling);
  spec.scaling.factor = given.factor;
  spec.scaling.original_max_position = given.original_max_position;
  spec.scaling.beta_fast = given.beta_fast;
  spec.scaling.beta_slow = given.beta_slow;
  if (!std::isnan(given.attention_factor)) spec.scaling.attention_factor = given.attention_factor;
  spec.scaling.low_freq_factor = given.low_freq_factor;
  spec.scaling.high_freq_factor = given.high_freq_factor;
  return spec;
}

}  // namespace

namespace headway::c_api {

KvCache cache_of(const headway_kv_cache* cache) {
  const headway_kv_cache given = read(cache, "cache", headway_kv_cache{});
  require(given.reserved == 0, "cache.reserved is ", given.reserved, ", expected 0");
  KvCache result;
  result.key = required_view(given.key, "cache.key");
  result.value = required_view(given.value, "cache.value");
  result.key_scale = view(given.key_scale, "cache.key_scale");
  result.value_scale = view(given.value_scale, "cache.value_scale");
  result.slots = view(given.slots, "cache.slots");
  result.block_table = view(given.block_table, "cache.block_table");
  result.ring = given.ring != 0;
  return result;
}

}  // namespace headway::c_api

void headway_kv_cache_init_sized(headway_kv_cache* cache, size_t struct_size) {
  init(cache, struct_size, headway_kv_cache{});
}

void headway_rotary_spec_init_sized(headway_rotary_spec* spec, size_t struct_size) {
  init(spec, struct_size, default_rotary_spec());
}

headway_status headway_rotary_create(const headway_rotary_spec* spec, headway_rotary** rotary) {
  return guarded([&] {
    headway_rotary*& result = required_result(rotary, "rotary");
    const RotarySpec given = rotary_spec_of(read(spec, "spec", default_rotary_spec()));
    give(std::make_unique<headway_rotary>(headway_rotary{RotaryTable(given)}), &result);
  });
}

headway_status headway_rotary_create_from_tables(const headway_tensor* cosines, const headway_tensor* sines,
                                                 int interleaved, headway_rotary** rotary) {
  return guarded([&] {
    headway_rotary*& result = required_result(rotary, "rotary");
    RotaryTable table(required_view(cosines, "cosines"), required_view(sines, "sines"), interleaved != 0);
    give(std::make_unique<headway_rotary>(headway_rotary{std::move(table)}), &result);
  });
}

void headway_rotary_destroy(headway_rotary* rotary) { delete rotary; }

void headway_append_args_init_sized(headway_append_args* args, size_t struct_size) {
  init(args, struct_size, default_append_args());
}

headway_status headway_append(const headway_append_args* args, const headway_kv_cache* cache,
                              const headway_threads* threads) {
  return guarded([&] {
    const headway_append_args given = read(args, "args", default_append_args());
    AppendArgs rows;
    rows.key = view(given.key, "key");
    rows.value = view(given.value, "value");
    rows.query_starts = view(given.query_starts, "query_starts");
    rows.lengths = view(given.lengths, "lengths");
    rows.slot_mapping = view(given.slot_mapping, "slot_mapping");
    rows.positions = view(given.positions, "positions");
    rows.query = view(given.query, "query");
    rows.rotary = given.rotary == nullptr ? nullptr : &given.rotary->table;
    rows.norm.enabled = given.norm != 0;
    rows.norm.across_heads = given.norm_across_heads != 0;
    rows.norm.epsilon = given.norm_epsilon;
    rows.norm.weight_offset = given.norm_weight_offset;
    rows.norm.query_weight = view(given.norm_query_weight, "norm_query_weight");
    rows.norm.key_weight = view(given.norm_key_weight, "norm_key_weight");
    append(rows, cache_of(cache), threads_of(threads));
  });
}
