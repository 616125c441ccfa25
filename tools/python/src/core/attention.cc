// headway._core.attention: the core with torch's ranks, broadcasting and grouped heads, over plans that are kept by
// shape.
#include "headway/attention.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "arrays.h"
#include "bindings.h"
#include "headway/error.h"

namespace headway::python {
namespace {

constexpr std::size_t kPlans = 64;
constexpr int kHead = -3;  // axis of heads from the end; those before it are batch axes

struct PlanKey {
  std::array<std::int64_t, 13> sizes;
  std::optional<float> scale;
  float softcap;
  std::string implementation;
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

std::shared_ptr<const Attention> plan_for(const AttentionSpec& spec, const std::string& implementation) {
  static RecentValues<PlanKey, Attention> plans(kPlans);
  const PlanKey key{
      {static_cast<std::int64_t>(spec.type), spec.batch, spec.num_heads, *spec.num_kv_heads, spec.query_len,
       spec.key_len, spec.head_dim, *spec.value_head_dim, static_cast<std::int64_t>(spec.causal), spec.window.left,
       spec.window.right, static_cast<std::int64_t>(spec.mask), static_cast<std::int64_t>(spec.key_mask)},
      spec.scale,
      spec.softcap,
      implementation};
  return plans.get(key, [&] { return std::make_shared<const Attention>(spec, AttentionOptions{implementation}); });
}

// Axes of size 1 in front, up to `rank`.
template <class View>
View with_rank(const View& view, int rank) {
  View result = view;
  result.dims = result.strides = Dims();
  for (int i = view.rank(); i < rank; ++i) {
    result.dims.push_back(1);
    result.strides.push_back(0);
  }
  for (int i = 0; i < view.rank(); ++i) {
    result.dims.push_back(view.dims[i]);
    result.strides.push_back(view.strides[i]);
  }
  return result;
}

struct Named {
  const char* name;
  ConstTensorView view;
};

// The size that axis `axis` of all of them is broadcast to.
std::int64_t common_size(const std::array<Named, 3>& tensors, int axis) {
  std::int64_t size = 1;
  const char* owner = tensors[0].name;
  for (const Named& tensor : tensors) {
    const std::int64_t own = tensor.view.dims[axis];
    if (own == 1) continue;
    detail::require(size == 1 || size == own, tensor.name, " has ", own, " in axis ", axis - tensor.view.rank(),
                    " where ", owner, " has ", size);
    size = own;
    owner = tensor.name;
  }
  return size;
}

void broadcast_axis(ConstTensorView* view, int axis, std::int64_t size) {
  if (view->dims[axis] == size) return;
  view->dims[axis] = size;
  view->strides[axis] = 0;
}

struct Operands {
  ConstTensorView query, key, value, mask, key_mask;
  TensorView out;
};

// Runs the core for each index of the batch axes before the last one.
template <class Run>
void for_each_outer(const Operands& operands, const Run& run) {
  if (operands.query.rank() == 4) {
    run(operands);
    return;
  }
  for (std::int64_t i = 0; i < operands.query.dims[0]; ++i) {
    const Operands inner{operands.query.selected(0, i),
                         operands.key.selected(0, i),
                         operands.value.selected(0, i),
                         operands.mask ? operands.mask.selected(0, i) : ConstTensorView(),
                         operands.key_mask,
                         operands.out.selected(0, i)};
    for_each_outer(inner, run);
  }
}

struct Options {
  Causal causal = Causal::kNone;
  std::optional<float> scale;
  float softcap = 0;
  Window window;
  bool grouped = false;
  std::string implementation;
};

// Ranks and broadcasting: on return all have the same rank, at least 4, and the same batch axes.
void align(Operands* operands, const Options& options) {
  std::array<Named, 3> inputs = {Named{"query", operands->query}, Named{"key", operands->key},
                                 Named{"value", operands->value}};
  int rank = 4;
  for (const Named& input : inputs) {
    detail::require(input.view.present && input.view.rank() >= 2, input.name, " has rank ", input.view.rank(),
                    ", expected at least 2");
    rank = std::max(rank, input.view.rank());
  }
  for (Named& input : inputs) input.view = with_rank(input.view, rank);
  ConstTensorView &query = inputs[0].view, &key = inputs[1].view, &value = inputs[2].view;
  for (int axis = 0; axis < rank + kHead; ++axis) {
    const std::int64_t size = common_size(inputs, axis);
    for (Named& input : inputs) broadcast_axis(&input.view, axis, size);
  }
  const int head = rank + kHead;
  if (options.grouped) {
    detail::require(key.dims[head] == value.dims[head], "value has ", value.dims[head], " heads, key has ",
                    key.dims[head]);
    detail::require(key.dims[head] > 0 && query.dims[head] % key.dims[head] == 0, "query has ", query.dims[head],
                    " heads, expected a multiple of the ", key.dims[head], " of key (enable_gqa)");
  } else {
    const std::int64_t heads = common_size(inputs, head);
    broadcast_axis(&query, head, heads);
    if (key.dims[head] != value.dims[head]) {
      broadcast_axis(&key, head, heads);
      broadcast_axis(&value, head, heads);
    }
  }
  detail::require(key.dims[rank - 1] == query.dims[rank - 1], "key has head width ", key.dims[rank - 1], ", query has ",
                  query.dims[rank - 1]);
  detail::require(key.dims[rank - 2] == value.dims[rank - 2], "value has ", value.dims[rank - 2], " keys, key has ",
                  key.dims[rank - 2]);
  for (const Named& input : inputs) {
    detail::require(input.view.type == query.type, input.name, " is ", type_name(input.view.type), ", query is ",
                    type_name(query.type));
  }
  operands->query = query;
  operands->key = key;
  operands->value = value;
  operands->out = with_rank(operands->out, rank);
  Dims expected(query.dims);
  expected[rank - 1] = value.dims[rank - 1];
  detail::require(operands->out.dims == expected, "out is ", operands->out.dims, ", expected ", expected);
  if (operands->mask) {
    Dims scores(query.dims);
    scores[rank - 1] = key.dims[rank - 2];
    try {
      operands->mask = operands->mask.broadcast_to(scores);
    } catch (const Error&) {
      detail::fail(ErrorCode::kInvalidArgument, "attn_mask is ", operands->mask.dims, ", expected what broadcasts to ",
                   scores);
    }
  }
}

void attention(nb::handle query, nb::handle key, nb::handle value, nb::handle out, nb::handle mask, nb::handle key_mask,
               const std::string& causal, std::optional<float> scale, float softcap, std::int64_t window_left,
               std::int64_t window_right, bool grouped, const std::string& implementation, const Threads& threads,
               Profiler* profiler) {
  const InputArray q = input_array(query, "query"), k = input_array(key, "key"), v = input_array(value, "value"),
                   m = input_array(mask, "attn_mask"), n = input_array(key_mask, "key_mask");
  const OutputArray o = output_array(out, "out");
  Options options{.scale = scale,
                  .softcap = softcap,
                  .window = {window_left, window_right},
                  .grouped = grouped,
                  .implementation = implementation};
  if (causal == "top_left") {
    options.causal = Causal::kTopLeft;
  } else if (causal == "bottom_right") {
    options.causal = Causal::kBottomRight;
  } else {
    detail::require(causal == "none", "causal is \"", causal, "\", expected none, top_left or bottom_right");
  }

  const nb::gil_scoped_release released;
  Operands operands{q.view, k.view, v.view, m.view, n.view, o.view};
  align(&operands, options);
  AttentionSpec spec;
  apply_semantics("torch_sdpa", false, &spec);
  const int rank = operands.query.rank();
  spec.type = operands.query.type;
  detail::require(spec.type == DataType::kF32 || spec.type == DataType::kBF16, "query is ", type_name(spec.type),
                  ", expected f32 or bf16");
  spec.batch = operands.query.dims[rank - 4];
  spec.num_heads = operands.query.dims[rank - 3];
  spec.num_kv_heads = operands.key.dims[rank - 3];
  spec.query_len = operands.query.dims[rank - 2];
  spec.key_len = operands.key.dims[rank - 2];
  spec.head_dim = operands.query.dims[rank - 1];
  spec.value_head_dim = operands.value.dims[rank - 1];
  spec.causal = options.causal;
  spec.scale = options.scale;
  spec.softcap = options.softcap;
  spec.window = options.window;
  if (operands.mask) {
    const DataType type = operands.mask.type;
    detail::require(type == DataType::kBool || type == DataType::kF32 || type == spec.type, "attn_mask is ",
                    type_name(type), ", expected bool, f32 or the type of query, ", type_name(spec.type));
    spec.mask = type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
  }
  if (operands.key_mask) {
    detail::require(rank == 4, "key_mask is given beside a query of rank ", rank, ", expected 4");
    spec.key_mask = operands.key_mask.type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
  }
  if (element_count(operands.out.dims) == 0) return;
  const std::shared_ptr<const Attention> plan = plan_for(spec, options.implementation);
  std::byte* const memory = workspace(plan->workspace_bytes(threads.workers()));
  for_each_outer(operands, [&](const Operands& part) {
    AttentionArgs args;
    args.query = part.query;
    args.key = part.key;
    args.value = part.value;
    args.mask = part.mask;
    args.key_mask = part.key_mask;
    args.out = part.out;
    plan->run(args, memory, threads, profiler);
  });
}

}  // namespace

void bind_attention(nb::module_& module) {
  module.def("attention", &attention, nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("out"),
             nb::arg("mask").none(), nb::arg("key_mask").none(), nb::arg("causal"), nb::arg("scale").none(),
             nb::arg("softcap"), nb::arg("window_left"), nb::arg("window_right"), nb::arg("grouped"),
             nb::arg("implementation"), nb::arg("threads"), nb::arg("profiler").none(),
             "Attention over query, key and value of rank 2 or more, written to out.");
  module.def("attention_implementations", [] {
    nb::list names;
    for (const std::string& name : attention_implementations()) names.append(name);
    return names;
  });
}

}  // namespace headway::python
