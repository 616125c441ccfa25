// Concat and Split along an axis: each part is copied once, to or from a slice. Knows no element type.
#include <algorithm>
#include <string>

#include "ops/base/parallel_copy.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// The lists one after the other.
std::optional<DimList> joined_elements(const InferContext& node) {
  DimList elements;
  for (const ValueInfo& input : node.inputs) {
    if (!input.elements || input.rank() != 1) return std::nullopt;
    elements.insert(elements.end(), input.elements->begin(), input.elements->end());
  }
  if (static_cast<std::int64_t>(elements.size()) > kMaxElements) return std::nullopt;
  return elements;
}

/// The sizes one after the other.
Dim joined_sizes(const char* op, const InferContext& node, std::size_t axis) {
  std::int64_t total = 0;
  std::string sum = "sum";
  bool numbers = true;
  for (const ValueInfo& input : node.inputs) {
    const Dim& part = (*input.dims)[axis];
    numbers = numbers && part.is_number();
    sum += " " + text(part);
    if (numbers) {
      require(!__builtin_add_overflow(total, part.factor, &total), op, " axis ", axis, " does not fit 63 bits");
    }
  }
  return numbers ? Dim(total) : node.unknowns->named(sum, true);
}

Inferred infer_concat(const char* op, const InferContext& node) {
  require(!node.inputs.empty(), op, " has 0 inputs, expected 1 or more");
  check_inputs(op, node, node.inputs.size(), node.inputs.size());
  const std::int64_t given = node.attributes.integer("axis");
  ValueInfo out{.type = node.inputs[0].type, .dims = {}, .elements = joined_elements(node)};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) check_same_type(op, node, 0, i);
  const auto known = [](const ValueInfo& input) { return input.dims.has_value(); };
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), known)) return {out};
  const DimList& first = *node.inputs[0].dims;
  const auto axis = static_cast<std::size_t>(normalised_axis(op, given, first.size()));
  DimList dims = first;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    DimList wanted = first;
    const DimList& got = *node.inputs[i].dims;
    if (got.size() == first.size()) wanted[axis] = got[axis];
    require(may_equal(got, wanted), op, " input ", i, " has dims ", got, ", expected ", wanted,
            " as input 0 has beside axis ", axis);
    for (std::size_t a = 0; a < dims.size(); ++a) {
      if (!dims[a].is_number() && got[a].is_number()) dims[a] = got[a];
    }
  }
  dims[axis] = joined_sizes(op, node, axis);
  out.dims = std::move(dims);
  return {out};
}

std::unique_ptr<NodePlan> plan_concat(const char* op, const NodeContext& node, const Infos&) {
  const int axis =
      normalised_axis(op, node.attributes.integer("axis"), static_cast<std::size_t>(node.inputs[0].dims.rank()));
  return make_plan([axis](const RunContext& context, Inputs inputs, Outputs outputs) {
    std::int64_t at = 0;
    for (const ConstTensorView& input : inputs) {
      const std::int64_t end = at + input.dims[axis];
      parallel_copy(input, outputs[0].sliced(axis, at, end), context.threads);
      at = end;
    }
  });
}

/// Parts of an axis of `length` where no lengths are given: equal, and the last one is shorter where num_outputs says
/// how many there are.
DimList even_parts(const char* op, const InferContext& node, std::size_t axis, const Dim& length) {
  const std::int64_t parts = node.num_outputs;
  const bool uneven = node.attributes.has("num_outputs");
  if (!length.is_number()) {
    if (const auto even = divided(length, Dim(parts))) return DimList(static_cast<std::size_t>(parts), *even);
    return node.unknown_sizes(static_cast<std::size_t>(parts));
  }
  const std::int64_t n = length.factor;
  require(uneven || n % parts == 0, op, " axis ", axis, " of ", n, " elements does not split into ", parts,
          " equal parts");
  const std::int64_t part = n / parts + (n % parts != 0 ? 1 : 0);
  DimList lengths;
  for (std::int64_t left = n; lengths.size() < static_cast<std::size_t>(parts); left -= lengths.back().factor) {
    lengths.emplace_back(std::min(left, part));
  }
  return lengths;
}

/// Lengths from an input or an attribute, checked against the axis.
void check_parts(const char* op, std::size_t axis, const Dim& length, const std::vector<std::int64_t>& lengths) {
  const bool known = length.is_number();
  std::int64_t left = length.factor;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    require(lengths[i] >= 0 && (!known || lengths[i] <= left), op, " part ", i, " is ", lengths[i],
            " long, expected 0 to ", known ? left : INT64_MAX);
    if (known) left -= lengths[i];
  }
  require(!known || left == 0, op, " parts leave ", left, " of ", length, " elements of axis ", axis, ", expected 0");
}

/// Lengths are an input or an attribute; without them parts are equal.
Inferred infer_split(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 2);
  const ValueInfo& from = node.inputs[0];
  const auto parts = static_cast<std::size_t>(node.num_outputs);
  const std::int64_t given_axis = node.attributes.integer("axis", 0);
  bool given = false;
  const auto lengths = integers_of(op, node, 1, "split", &given);
  const std::int64_t named = node.attributes.integer("num_outputs", node.num_outputs);
  require(given || named == node.num_outputs, op, " num_outputs is ", named, ", expected ", parts, " outputs");
  require(!given || !lengths || lengths->size() == parts, op, " has ", lengths ? lengths->size() : 0,
          " lengths, expected ", parts, " outputs");
  Inferred outputs(parts, ValueInfo{.type = from.type, .dims = {}, .elements = {}});
  if (!from.dims) return outputs;
  const auto axis = static_cast<std::size_t>(normalised_axis(op, given_axis, from.dims->size()));
  const Dim& length = (*from.dims)[axis];
  if (given && lengths) check_parts(op, axis, length, *lengths);
  const DimList sizes = !given    ? even_parts(op, node, axis, length)
                        : lengths ? DimList(lengths->begin(), lengths->end())
                                  : node.unknown_sizes(parts);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    outputs[i].dims = from.dims;
    (*outputs[i].dims)[axis] = sizes[i];
    if (!from.elements || from.rank() != 1 || !length.is_number() || !sizes[i].is_number()) continue;
    const auto at = from.elements->begin() + static_cast<std::ptrdiff_t>(begin);
    outputs[i].elements = DimList(at, at + sizes[i].factor);
    begin += static_cast<std::size_t>(sizes[i].factor);
  }
  return outputs;
}

std::unique_ptr<NodePlan> plan_split(const char* op, const NodeContext& node, const Infos& infos) {
  const int axis =
      normalised_axis(op, node.attributes.integer("axis", 0), static_cast<std::size_t>(node.inputs[0].dims.rank()));
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
int viewed_split(const NodeContext& node, const Infos&) { return node.num_outputs == 1 ? 0 : -1; }

}  // namespace

void add_concat_ops(Registry* registry) {
  registry->add(
      make_op("Concat",
              {.infer = infer_concat, .plan = plan_concat, .aliased_input = [](const NodeContext& node, const Infos&) {
                 return node.inputs.size() == 1 ? 0 : -1;
               }}));
  registry->add(make_op("Split", {.infer = infer_split, .plan = plan_split, .aliased_input = viewed_split}));
}

}  // namespace headway
