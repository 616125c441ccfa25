// Concat and Split along an axis: each part is copied once, to or from a slice. Knows no element type.
#include "ops/base/parallel_copy.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

int concat_axis(const char* op, const NodeContext& node) {
  return normalised_axis(op, node.attributes.integer("axis"), node.inputs[0].dims.rank());
}

Infos infer_concat(const char* op, const NodeContext& node) {
  require(!node.inputs.empty(), op, " has 0 inputs, expected 1 or more");
  check_inputs(op, node, node.inputs.size(), node.inputs.size());
  const int axis = concat_axis(op, node);
  const Dims& first = node.inputs[0].dims;
  Dims dims = first;
  dims[axis] = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    check_same_type(op, node, 0, i);
    Dims wanted = first;
    const Dims& got = node.inputs[i].dims;
    if (got.rank() == first.rank()) wanted[axis] = got[axis];
    require(got == wanted, op, " input ", i, " has dims ", got, ", expected ", wanted, " as input 0 has beside axis ",
            axis);
    require(!__builtin_add_overflow(dims[axis], got[axis], &dims[axis]), op, " axis ", axis, " does not fit 63 bits");
  }
  return {{node.inputs[0].type, dims}};
}

std::unique_ptr<NodePlan> plan_concat(const char* op, const NodeContext& node, const Infos&) {
  return make_plan([axis = concat_axis(op, node)](const RunContext& context, Inputs inputs, Outputs outputs) {
    std::int64_t at = 0;
    for (const ConstTensorView& input : inputs) {
      const std::int64_t end = at + input.dims[axis];
      parallel_copy(input, outputs[0].sliced(axis, at, end), context.threads);
      at = end;
    }
  });
}

int split_axis(const char* op, const NodeContext& node) {
  check_inputs(op, node, 1, 2);
  return normalised_axis(op, node.attributes.integer("axis", 0), node.inputs[0].dims.rank());
}

/// Lengths are an input or an attribute; without them parts are equal, and the last one is shorter where num_outputs
/// says how many there are.
Infos infer_split(const char* op, const NodeContext& node) {
  const int axis = split_axis(op, node);
  const std::int64_t length = node.inputs[0].dims[axis];
  const std::int64_t parts = node.num_outputs;
  bool given = false;
  std::vector<std::int64_t> lengths = integers_of(op, node, 1, "split", &given);
  if (!given) {
    const std::int64_t named = node.attributes.integer("num_outputs", parts);
    require(named == parts, op, " num_outputs is ", named, ", expected ", parts, " outputs");
    const bool uneven = node.attributes.has("num_outputs");
    require(uneven || length % parts == 0, op, " axis ", axis, " of ", length, " elements does not split into ", parts,
            " equal parts");
    const std::int64_t part = (length + parts - 1) / parts;
    for (std::int64_t i = 0; i < parts; ++i) lengths.push_back(std::clamp<std::int64_t>(length - i * part, 0, part));
  }
  require(lengths.size() == static_cast<std::size_t>(parts), op, " has ", lengths.size(), " lengths, expected ", parts,
          " outputs");
  Infos outputs;
  std::int64_t left = length;
  for (const std::int64_t part : lengths) {
    require(part >= 0 && part <= left, op, " part ", outputs.size(), " is ", part, " long, expected 0 to ", left);
    left -= part;
    outputs.push_back(node.inputs[0]);
    outputs.back().dims[axis] = part;
  }
  require(left == 0, op, " parts leave ", left, " of ", length, " elements of axis ", axis, ", expected 0");
  return outputs;
}

std::unique_ptr<NodePlan> plan_split(const char* op, const NodeContext& node, const Infos& infos) {
  const int axis = split_axis(op, node);
  std::vector<std::int64_t> ends;
  for (const TensorInfo& info : infos) ends.push_back((ends.empty() ? 0 : ends.back()) + info.dims[axis]);
  return make_plan([axis, ends](const RunContext& context, Inputs inputs, Outputs outputs) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i]) parallel_copy(inputs[0].sliced(axis, at, ends[i]), outputs[i], context.threads);
      at = ends[i];
    }
  });
}

/// One part: the whole.
int viewed_split(const NodeContext& node) { return node.num_outputs == 1 ? 0 : -1; }

}  // namespace

void add_concat_ops(Registry* registry) {
  registry->add(
      make_op("Concat", {.infer = infer_concat, .plan = plan_concat, .aliased_input = [](const NodeContext& node) {
                           return node.inputs.size() == 1 ? 0 : -1;
                         }}));
  registry->add(make_op("Split", {.infer = infer_split, .plan = plan_split, .aliased_input = viewed_split}));
}

}  // namespace headway
