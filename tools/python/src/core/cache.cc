// headway._core: caches, rotations, append, and attention over a cache whose bounds grow with what is asked of it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "arrays.h"
#include "bindings.h"
#include "headway/cached_attention.h"
#include "headway/error.h"
#include "headway/kv_cache.h"

namespace headway::python {
namespace {

// A cache and the arrays it lies in.
struct HeldCache {
  HeldCache(nb::handle key_array, nb::handle value_array, nb::handle slots_array, nb::handle block_table_array,
            bool ring)
      : key(output_array(key_array, "cache.key")),
        value(output_array(value_array, "cache.value")),
        slots(index_array(slots_array, "cache.slots")),
        block_table(index_array(block_table_array, "cache.block_table")) {
    cache.key = key.view;
    cache.value = value.view;
    cache.slots = slots.view;
    cache.block_table = block_table.view;
    cache.ring = ring;
  }

  OutputArray key, value;
  IndexArray slots, block_table;
  KvCache cache;
};

RotaryScaling::Kind scaling_kind(const std::string& name) {
  using Kind = RotaryScaling::Kind;
  if (name == "none") return Kind::kNone;
  if (name == "linear") return Kind::kLinear;
  if (name == "ntk") return Kind::kNtk;
  if (name == "yarn") return Kind::kYarn;
  if (name == "llama3") return Kind::kLlama3;
  detail::fail(ErrorCode::kInvalidArgument, "scaling is \"", name, "\", expected none, linear, ntk, yarn or llama3");
}

// Its bounds of batch, tokens and positions are those of the largest call so far, rounded up: they book workspaces and
// decide nothing else.
class GrowingAttention {
 public:
  explicit GrowingAttention(const CachedAttentionSpec& spec) : plan_(std::make_shared<CachedAttention>(spec)) {}

  std::shared_ptr<const CachedAttention> plan(std::int64_t batch, std::int64_t tokens, std::int64_t positions) {
    const std::lock_guard lock(mutex_);
    CachedAttentionSpec spec = plan_->spec();
    if (batch > spec.max_batch || tokens > spec.max_tokens || positions > spec.max_cache) {
      spec.max_batch = grown(spec.max_batch, batch);
      spec.max_tokens = grown(spec.max_tokens, tokens);
      spec.max_cache = grown(spec.max_cache, positions);
      plan_ = std::make_shared<CachedAttention>(spec);
    }
    return plan_;
  }

 private:
  static std::int64_t grown(std::int64_t bound, std::int64_t needed) {
    if (needed <= bound) return bound;
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(needed)));
  }

  std::mutex mutex_;
  std::shared_ptr<CachedAttention> plan_;
};

std::int64_t largest(const ConstTensorView& lengths) {
  detail::require(lengths.present && lengths.rank() == 1, "lengths has rank ", lengths.rank(), ", expected 1");
  std::int64_t most = 0;
  for (std::int64_t b = 0; b < lengths.dims[0]; ++b) {
    most = std::max<std::int64_t>(most, lengths.as<std::int32_t>()[b * lengths.strides[0]]);
  }
  return most;
}

// What a call of GrowingAttention reads, held.
struct HeldCall {
  InputArray query, sinks, alibi_slopes, relative_bias, mask;
  IndexArray query_starts, lengths, mask_starts;
  OutputArray out, log_sum_exp;
  CachedAttentionArgs args;
};

void fill(nb::handle query, const HeldCache& cache, nb::handle lengths, nb::handle query_starts, nb::handle sinks,
          nb::handle alibi_slopes, nb::handle relative_bias, std::int64_t relative_bias_future, nb::handle mask,
          nb::handle mask_starts, nb::handle out, nb::handle log_sum_exp, HeldCall* call) {
  call->query = input_array(query, "query");
  call->sinks = input_array(sinks, "sinks");
  call->alibi_slopes = input_array(alibi_slopes, "alibi_slopes");
  call->relative_bias = input_array(relative_bias, "relative_bias");
  call->mask = input_array(mask, "mask");
  call->query_starts = index_array(query_starts, "query_starts");
  call->lengths = index_array(lengths, "lengths");
  call->mask_starts = index_array(mask_starts, "mask_starts");
  call->out = output_array(out, "out");
  call->log_sum_exp = output_array(log_sum_exp, "log_sum_exp");
  CachedAttentionArgs& args = call->args;
  args.query = call->query.view;
  args.query_starts = call->query_starts.view;
  args.lengths = call->lengths.view;
  args.cache = cache.cache;
  args.sinks = call->sinks.view;
  args.alibi_slopes = call->alibi_slopes.view;
  args.relative_bias = call->relative_bias.view;
  args.relative_bias_future = relative_bias_future;
  args.mask = call->mask.view;
  args.mask_starts = call->mask_starts.view;
  args.out = call->out.view;
  args.log_sum_exp = call->log_sum_exp.view;
}

std::shared_ptr<const CachedAttention> plan_of(GrowingAttention* attention, const CachedAttentionArgs& args) {
  const std::int64_t tokens = args.query.present && args.query.rank() > 0 ? args.query.dims[0] : 0;
  const std::int64_t positions = largest(args.lengths);
  return attention->plan(args.lengths.dims[0], tokens, positions);
}

void bind_rotation(nb::module_& module) {
  nb::class_<RotaryTable>(module, "RotaryTable", "Cosines and sines of every position and pair. Immutable.")
      .def(
          "__init__",
          [](RotaryTable* self, std::int64_t rotary_dim, std::int64_t positions, double base, bool interleaved,
             const std::string& scaling, double factor, double original_max_position, double beta_fast,
             double beta_slow, std::optional<double> attention_factor, double low_freq_factor,
             double high_freq_factor) {
            const RotaryScaling how{scaling_kind(scaling), factor,          original_max_position, beta_fast, beta_slow,
                                    attention_factor,      low_freq_factor, high_freq_factor};
            new (self) RotaryTable(RotarySpec{rotary_dim, positions, base, interleaved, how});
          },
          nb::arg("rotary_dim"), nb::arg("positions"), nb::arg("base") = 10000.0, nb::arg("interleaved") = false,
          nb::kw_only(), nb::arg("scaling") = "none", nb::arg("factor") = 1.0, nb::arg("original_max_position") = 0.0,
          nb::arg("beta_fast") = 32.0, nb::arg("beta_slow") = 1.0, nb::arg("attention_factor") = nb::none(),
          nb::arg("low_freq_factor") = 1.0, nb::arg("high_freq_factor") = 4.0,
          "Of `positions` positions; scaling: none, linear, ntk, yarn or llama3.")
      .def_static(
          "from_tables",
          [](nb::handle cos, nb::handle sin, bool interleaved) {
            const InputArray c = input_array(cos, "cos"), s = input_array(sin, "sin");
            return RotaryTable(c.view, s.view, interleaved);
          },
          nb::arg("cos"), nb::arg("sin"), nb::arg("interleaved") = false,
          "Of cosines and sines [positions, rotary_dim / 2] f32, which are copied.")
      .def_prop_ro("rotary_dim", &RotaryTable::rotary_dim)
      .def_prop_ro("positions", &RotaryTable::positions)
      .def_prop_ro("interleaved", &RotaryTable::interleaved);
}

void append_rows(const HeldCache& cache, nb::handle key, nb::handle value, nb::handle query, nb::handle lengths,
                 nb::handle query_starts, nb::handle slot_mapping, nb::handle positions, const RotaryTable* rotary,
                 bool norm, float norm_epsilon, float norm_weight_offset, bool norm_across_heads,
                 nb::handle query_norm_weight, nb::handle key_norm_weight, const Threads& threads) {
  const InputArray k = input_array(key, "key"), v = input_array(value, "value"),
                   query_weight = input_array(query_norm_weight, "query_norm_weight"),
                   key_weight = input_array(key_norm_weight, "key_norm_weight");
  const OutputArray q = output_array(query, "query");
  const IndexArray ends = index_array(lengths, "lengths"), starts = index_array(query_starts, "query_starts"),
                   rows = index_array(slot_mapping, "slot_mapping"), turns = index_array(positions, "positions");
  AppendArgs args;
  args.key = k.view;
  args.value = v.view;
  args.query = q.view;
  args.lengths = ends.view;
  args.query_starts = starts.view;
  args.slot_mapping = rows.view;
  args.positions = turns.view;
  args.rotary = rotary;
  args.norm = {norm, norm_epsilon, norm_weight_offset, norm_across_heads, query_weight.view, key_weight.view};
  const nb::gil_scoped_release released;
  append(args, cache.cache, threads);
}

void merge_parts(nb::handle out_a, nb::handle lse_a, nb::handle out_b, nb::handle lse_b, nb::handle out,
                 nb::handle log_sum_exp, const Threads& threads) {
  const InputArray oa = input_array(out_a, "out_a"), la = input_array(lse_a, "log_sum_exp_a"),
                   ob = input_array(out_b, "out_b"), lb = input_array(lse_b, "log_sum_exp_b");
  const OutputArray o = output_array(out, "out"), l = output_array(log_sum_exp, "log_sum_exp");
  const nb::gil_scoped_release released;
  merge({oa.view, la.view}, {ob.view, lb.view}, o.view, l.view, threads);
}

}  // namespace

void bind_cache(nb::module_& module) {
  nb::class_<HeldCache>(module, "KvCache")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, bool>(), nb::arg("key").none(),
           nb::arg("value").none(), nb::arg("slots").none(), nb::arg("block_table").none(), nb::arg("ring"));
  bind_rotation(module);
  module.def("append", &append_rows, nb::arg("cache"), nb::arg("key").none(), nb::arg("value").none(),
             nb::arg("query").none(), nb::arg("lengths").none(), nb::arg("query_starts").none(),
             nb::arg("slot_mapping").none(), nb::arg("positions").none(), nb::arg("rotary").none(), nb::arg("norm"),
             nb::arg("norm_epsilon"), nb::arg("norm_weight_offset"), nb::arg("norm_across_heads"),
             nb::arg("query_norm_weight").none(), nb::arg("key_norm_weight").none(), nb::arg("threads"));
  module.def("merge", &merge_parts);

  nb::class_<GrowingAttention>(module, "CachedAttention")
      .def(
          "__init__",
          [](GrowingAttention* self, const std::string& type, const std::string& cache_type, std::int64_t num_heads,
             std::optional<std::int64_t> num_kv_heads, std::int64_t head_dim,
             std::optional<std::int64_t> value_head_dim, std::optional<float> scale, float softcap, bool causal,
             std::int64_t window_left, std::int64_t window_right, bool batch_invariant) {
            CachedAttentionSpec spec;
            spec.type = type_of_name(type);
            spec.cache_type = type_of_name(cache_type);
            spec.num_heads = num_heads;
            spec.num_kv_heads = num_kv_heads;
            spec.head_dim = head_dim;
            spec.value_head_dim = value_head_dim;
            spec.scale = scale;
            spec.softcap = softcap;
            spec.causal = causal;
            spec.window = {window_left, window_right};
            spec.batch_invariant = batch_invariant;
            new (self) GrowingAttention(spec);
          },
          nb::arg("type"), nb::arg("cache_type"), nb::arg("num_heads"), nb::arg("num_kv_heads").none(),
          nb::arg("head_dim"), nb::arg("value_head_dim").none(), nb::arg("scale").none(), nb::arg("softcap"),
          nb::arg("causal"), nb::arg("window_left"), nb::arg("window_right"), nb::arg("batch_invariant"))
      .def("explain", [](GrowingAttention& self) { return self.plan(0, 0, 0)->explain(); })
      .def(
          "run",
          [](GrowingAttention& self, nb::handle query, const HeldCache& cache, nb::handle lengths,
             nb::handle query_starts, nb::handle sinks, nb::handle alibi_slopes, nb::handle relative_bias,
             std::int64_t relative_bias_future, nb::handle mask, nb::handle mask_starts, nb::handle out,
             nb::handle log_sum_exp, const Threads& threads, Profiler* profiler) {
            HeldCall call;
            fill(query, cache, lengths, query_starts, sinks, alibi_slopes, relative_bias, relative_bias_future, mask,
                 mask_starts, out, log_sum_exp, &call);
            const nb::gil_scoped_release released;
            const std::shared_ptr<const CachedAttention> plan = plan_of(&self, call.args);
            plan->run(call.args, workspace(plan->workspace_bytes(threads.workers())), threads, profiler);
          },
          nb::arg("query").none(), nb::arg("cache"), nb::arg("lengths").none(), nb::arg("query_starts").none(),
          nb::arg("sinks").none(), nb::arg("alibi_slopes").none(), nb::arg("relative_bias").none(),
          nb::arg("relative_bias_future"), nb::arg("mask").none(), nb::arg("mask_starts").none(), nb::arg("out"),
          nb::arg("log_sum_exp").none(), nb::arg("threads"), nb::arg("profiler").none())
      .def(
          "plan",
          [](GrowingAttention& self, nb::handle query, const HeldCache& cache, nb::handle lengths,
             nb::handle query_starts, nb::handle out) {
            HeldCall call;
            fill(query, cache, lengths, query_starts, nb::none(), nb::none(), nb::none(), 0, nb::none(), nb::none(),
                 out, nb::none(), &call);
            const CachedAttentionPlan plan = plan_of(&self, call.args)->plan(call.args);
            nb::dict numbers;
            numbers["tasks"] = plan.tasks;
            numbers["few_query_tasks"] = plan.few_query_tasks;
            numbers["split_keys"] = plan.split_keys;
            numbers["split_sequences"] = plan.split_sequences;
            return numbers;
          },
          nb::arg("query").none(), nb::arg("cache"), nb::arg("lengths").none(), nb::arg("query_starts").none(),
          nb::arg("out"));
}

}  // namespace headway::python
