// headway._core.MultiHeadAttention: a layer's weights, and plans of it by shape that share what is packed.
#include "headway/multi_head_attention.h"

#include <nanobind/nanobind.h>

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "arrays.h"
#include "bindings.h"
#include "headway/error.h"

namespace headway::python {
namespace {

constexpr std::size_t kPlans = 16;

// [B, S, E] of [S, E], of [S, B, E] or of itself.
template <class View>
View batched(const View& view, bool batch_first) {
  if (view.rank() == 3) return batch_first ? view : view.permuted({1, 0, 2});
  View result = view;
  result.dims = {1, view.dims[0], view.dims[1]};
  result.strides = {0, view.strides[0], view.strides[1]};
  return result;
}

// A score or a mask without its batch axis gets one.
template <class View>
View with_batch(const View& view, int rank) {
  if (view.rank() == rank) return view;
  View result = view;
  result.dims = result.strides = Dims();
  result.dims.push_back(1);
  result.strides.push_back(0);
  for (int i = 0; i < view.rank(); ++i) {
    result.dims.push_back(view.dims[i]);
    result.strides.push_back(view.strides[i]);
  }
  return result;
}

MaskKind kind_of(const ConstTensorView& mask) {
  if (!mask) return MaskKind::kNone;
  return mask.type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
}

// The arguments of a call, held.
struct HeldCall {
  InputArray query, key, value, mask, key_mask;
  OutputArray out, scores;
};

class Layer {
 public:
  Layer(std::int64_t num_heads, bool add_zero_attention, const nb::dict& weights)
      : num_heads_(num_heads), add_zero_attention_(add_zero_attention), plans_(kPlans) {
    ConstTensorView* const views[] = {
        &weights_.query,    &weights_.key,        &weights_.value,       &weights_.output, &weights_.query_bias,
        &weights_.key_bias, &weights_.value_bias, &weights_.output_bias, &weights_.bias_k, &weights_.bias_v};
    static constexpr const char* kNames[] = {"query",    "key",        "value",       "output", "query_bias",
                                             "key_bias", "value_bias", "output_bias", "bias_k", "bias_v"};
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      arrays_[i] = input_array(weights[kNames[i]], kNames[i]);
      *views[i] = arrays_[i].view;
    }
    for (const ConstTensorView* weight : {views[0], views[1], views[2], views[3]}) {
      detail::require(weight->present && weight->rank() == 2, "a weight has rank ", weight->rank(), ", expected 2");
    }
    detail::require(num_heads >= 1, "num_heads is ", num_heads, ", expected at least 1");
  }

  void run(const HeldCall& call, bool causal, bool average, bool same_input, bool batch_first, const Threads& threads,
           Profiler* profiler) {
    MultiHeadAttentionArgs args;
    const ConstTensorView* const inputs[] = {&call.query.view, &call.key.view, &call.value.view};
    ConstTensorView* const views[] = {&args.query, &args.key, &args.value};
    static constexpr const char* kNames[] = {"query", "key", "value"};
    for (int i = 0; i < 3; ++i) {
      const int rank = inputs[i]->rank();
      detail::require(rank == 3 || rank == 2, kNames[i], " has rank ", rank, ", expected 3, or 2 without a batch");
      detail::require(rank == inputs[0]->rank(), kNames[i], " has rank ", rank, ", query has ", inputs[0]->rank());
      *views[i] = batched(*inputs[i], batch_first);
    }
    args.out = batched(call.out.view, batch_first);
    args.key_mask = call.key_mask.view ? with_batch(call.key_mask.view, 2) : call.key_mask.view;

    MultiHeadAttentionSpec spec;
    apply_semantics("torch_mha", causal, &spec);
    spec.type = args.query.type;
    spec.batch = args.query.dims[0];
    spec.query_len = args.query.dims[1];
    spec.key_len = args.key.dims[1];
    spec.embed_dim = args.query.dims[2];
    spec.kdim = args.key.dims[2];
    spec.vdim = args.value.dims[2];
    spec.num_heads = num_heads_;
    spec.add_zero_attention = add_zero_attention_;
    spec.self_attention = same_input;
    if (call.mask.view) args.mask = mask_of(call.mask.view, spec.batch);
    spec.mask = kind_of(args.mask);
    spec.key_mask = kind_of(args.key_mask);
    if (call.scores.view) {
      spec.scores_output = average ? ScoresOutput::kMeanProbabilities : ScoresOutput::kProbabilities;
      args.scores = with_batch(call.scores.view, average ? 3 : 4);
    }
    const std::shared_ptr<const MultiHeadAttention> plan = plan_for(spec);
    plan->run(args, workspace(plan->workspace_bytes(threads.workers())), threads, profiler);
  }

 private:
  using PlanKey = std::array<std::int64_t, 11>;

  // [B·H, Sq, Skv] as [B, H, Sq, Skv].
  ConstTensorView mask_of(const ConstTensorView& mask, std::int64_t batch) const {
    if (mask.rank() != 3) return mask;
    detail::require(mask.dims[0] == batch * num_heads_, "attn_mask has ", mask.dims[0],
                    " matrices, expected batch times heads, ", batch * num_heads_);
    return mask.split_axis(0, batch);
  }

  std::shared_ptr<const MultiHeadAttention> plan_for(const MultiHeadAttentionSpec& spec) {
    const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
    const PlanKey key = {number(spec.type),
                         spec.batch,
                         spec.query_len,
                         *spec.key_len,
                         spec.embed_dim,
                         *spec.kdim,
                         *spec.vdim,
                         number(spec.causal),
                         number(spec.mask) * 8 + number(spec.key_mask),
                         number(spec.scores_output),
                         number(spec.self_attention)};
    return plans_.get(key, [&] {
      const std::lock_guard lock(mutex_);
      auto plan = std::make_shared<const MultiHeadAttention>(spec, weights_, AttentionOptions{}, newest_.get());
      newest_ = plan;
      return plan;
    });
  }

  std::int64_t num_heads_;
  bool add_zero_attention_;
  std::array<InputArray, 10> arrays_;
  MultiHeadAttentionWeights weights_;
  RecentValues<PlanKey, MultiHeadAttention> plans_;
  std::mutex mutex_;
  std::shared_ptr<const MultiHeadAttention> newest_;
};

}  // namespace

void bind_layer(nb::module_& module) {
  nb::class_<Layer>(module, "MultiHeadAttention")
      .def(nb::init<std::int64_t, bool, const nb::dict&>(), nb::arg("num_heads"), nb::arg("add_zero_attention"),
           nb::arg("weights"))
      .def(
          "run",
          [](Layer& self, nb::handle query, nb::handle key, nb::handle value, nb::handle mask, nb::handle key_mask,
             nb::handle out, nb::handle scores, bool causal, bool average, bool same_input, bool batch_first,
             const Threads& threads, Profiler* profiler) {
            const HeldCall call{input_array(query, "query"),
                                input_array(key, "key"),
                                input_array(value, "value"),
                                input_array(mask, "attn_mask"),
                                input_array(key_mask, "key_padding_mask"),
                                output_array(out, "out"),
                                output_array(scores, "weights")};
            const nb::gil_scoped_release released;
            self.run(call, causal, average, same_input, batch_first, threads, profiler);
          },
          nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("mask").none(), nb::arg("key_mask").none(),
          nb::arg("out"), nb::arg("scores").none(), nb::arg("causal"), nb::arg("average"), nb::arg("same_input"),
          nb::arg("batch_first"), nb::arg("threads"), nb::arg("profiler").none());
}

}  // namespace headway::python
