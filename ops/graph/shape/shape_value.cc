// Operators whose values follow from shapes: Shape, Size, ConstantOfShape, Range. The first two are known as soon as a
// shape is planned; the others are filled from inputs that are. Knows no arithmetic of whole tensors.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/base/numeric.h"
#include "ops/base/parallel_copy.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// The part [start, end) of the input's dims; bounds count from the end when negative and are clamped.
std::optional<DimList> shape_of(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 1);
  const std::int64_t start = node.attributes.integer("start", 0);
  const std::int64_t end = node.attributes.integer("end", INT64_MAX);
  if (!node.inputs[0].dims) return std::nullopt;
  const DimList& dims = *node.inputs[0].dims;
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto bound = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  return DimList(dims.begin() + bound(start), dims.begin() + std::max(bound(start), bound(end)));
}

std::optional<DimList> size_of(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 1);
  if (!node.inputs[0].dims) return std::nullopt;
  return DimList{count_of(*node.inputs[0].dims)};
}

/// `rank` of the result is 1 or, for one number, 0. A session takes the elements that the rule gives, so that a plan
/// never runs.
OpFunctions integers(std::optional<DimList> (*values_of)(const char*, const InferContext&), int rank) {
  return {.infer = [=](const char* op, const InferContext& node) -> Inferred {
            ValueInfo out{.type = DataType::kI64, .dims = DimList{}, .elements = values_of(op, node)};
            if (rank == 1) {
              out.dims =
                  out.elements ? DimList{static_cast<std::int64_t>(out.elements->size())} : node.unknown_sizes(1);
            }
            return {out};
          },
          .plan =
              [=](const char* op, const NodeContext& node, const Infos&) {
                const std::vector<ValueInfo> inputs{value_info(node.inputs[0])};
                const DimList elements = values_of(op, {node.attributes, inputs, node.constants}).value();
                std::vector<std::int64_t> values;
                for (const Dim& element : elements) values.push_back(element.factor);
                return make_plan([values](const RunContext&, Inputs, Outputs outputs) {
                  std::copy(values.begin(), values.end(), outputs[0].as<std::int64_t>());
                });
              }};
}

/// Of a short list of one number.
std::optional<DimList> repeated_element(const InferContext& node, const DimList& dims) {
  if (!has_input(node, 1) || !node.inputs[1].elements || node.inputs[1].elements->size() != 1) return std::nullopt;
  const Dim count = dims.empty() ? Dim(1) : dims[0];
  if (dims.size() > 1 || !count.is_number() || count.factor < 0 || count.factor > kMaxElements) return std::nullopt;
  return DimList(static_cast<std::size_t>(count.factor), (*node.inputs[1].elements)[0]);
}

/// The value is a second input of one element, f32 0 when there is none.
Inferred infer_constant(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 2);
  ValueInfo out{.type = DataType::kF32, .dims = elements_of(op, node, 0, "shape"), .elements = {}};
  check_one_element(op, node, 1, "value");
  if (has_input(node, 1)) out.type = node.inputs[1].type;
  if (!out.dims) return {out};
  if (all_numbers(*out.dims)) count_of(*out.dims);
  for (std::size_t i = 0; i < out.dims->size(); ++i) {
    if (!is_size(node, (*out.dims)[i])) (*out.dims)[i] = node.unknown_size(static_cast<std::int64_t>(i));
  }
  out.elements = repeated_element(node, *out.dims);
  return {out};
}

std::unique_ptr<NodePlan> plan_constant(const char*, const NodeContext&, const Infos&) {
  return make_plan([](const RunContext& context, Inputs inputs, Outputs outputs) {
    const float zero = 0;
    const ConstTensorView value = optional_input(inputs, 1);
    const ConstTensorView source = value ? value.reshaped({}) : ConstTensorView(view_of(&zero, Dims{}));
    parallel_copy(source.broadcast_to(outputs[0].dims), outputs[0], context.threads);
  });
}

/// nullopt where it is not known yet.
template <class T>
std::optional<T> known_number(const char* op, const InferContext& node, std::size_t input) {
  static constexpr const char* kNames[] = {"start", "limit", "delta"};
  const bool known = input < node.constants.size() && node.constants[input];
  if (!known) {
    if (!node.is_final()) return std::nullopt;
    fail(ErrorCode::kUnsupported, op, " input ", input, " (", kNames[input],
         ") is computed from data at run time, expected to follow from the shapes");
  }
  T number{};
  std::memcpy(&number, node.constants[input].data, sizeof(T));
  return number;
}

/// Steps from start until limit is reached, in unsigned numbers: the distance may not fit a signed one.
std::int64_t integer_steps(std::int64_t start, std::int64_t limit, std::int64_t delta) {
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  const auto from = static_cast<std::uint64_t>(delta > 0 ? start : limit);
  const auto to = static_cast<std::uint64_t>(delta > 0 ? limit : start);
  const std::uint64_t step = delta > 0 ? static_cast<std::uint64_t>(delta) : 0 - static_cast<std::uint64_t>(delta);
  return static_cast<std::int64_t>((to - from - 1) / step + 1);
}

/// nullopt where it is not known yet.
template <class T>
std::optional<std::int64_t> range_length(const char* op, const InferContext& node) {
  const auto first = known_number<T>(op, node, 0);
  const auto last = known_number<T>(op, node, 1);
  const auto step = known_number<T>(op, node, 2);
  require(!step || *step != 0, op, " delta is 0, expected another number");
  if (!first || !last || !step) return std::nullopt;
  const T start = *first;
  const T limit = *last;
  const T delta = *step;
  if constexpr (std::is_integral_v<T>) {
    const std::int64_t length = integer_steps(start, limit, delta);
    require(length >= 0, op, " from ", start, " to ", limit, " has more elements than fit 63 bits");
    return length;
  } else {
    const double steps =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
    require(std::isfinite(steps) && steps < 0x1p53, op, " from ", start, " to ", limit, " by ", delta, " has ", steps,
            " elements, expected a finite number");
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(std::max(steps, 0.0)));
  }
}

template <class Fn>
decltype(auto) visit_range_type(DataType type, Fn&& fn) {
  switch (type) {
    case DataType::kF32:
      return fn(float{});
    case DataType::kF64:
      return fn(double{});
    case DataType::kI32:
      return fn(std::int32_t{});
    default:
      return fn(std::int64_t{});
  }
}

/// From 0 in steps of 1: as many as the limit says.
std::optional<Dim> counted(const InferContext& node) {
  const auto single = [&](std::size_t i) {
    const auto& elements = node.inputs[i].elements;
    return elements && elements->size() == 1 ? std::optional<Dim>((*elements)[0]) : std::nullopt;
  };
  const auto start = single(0);
  const auto limit = single(1);
  const auto delta = single(2);
  const bool counts = start && limit && delta && start->is(0) && delta->is(1) && is_size(node, *limit);
  return counts ? limit : std::nullopt;
}

Inferred infer_range(const char* op, const InferContext& node) {
  static constexpr const char* kNames[] = {"start", "limit", "delta"};
  check_inputs(op, node, 3, 3);
  check_type(op, node, 0, {DataType::kF32, DataType::kF64, DataType::kI32, DataType::kI64});
  check_same_type(op, node, 0, 1);
  check_same_type(op, node, 0, 2);
  for (const std::size_t i : {0, 1, 2}) check_one_element(op, node, i, kNames[i]);
  ValueInfo out{.type = node.inputs[0].type, .dims = {}, .elements = {}};
  std::optional<std::int64_t> length;
  if (out.type) {
    length = visit_range_type(*out.type, [&](auto kind) { return range_length<decltype(kind)>(op, node); });
  }
  const std::optional<Dim> limit = length ? std::optional<Dim>(*length) : counted(node);
  out.dims = DimList{limit ? *limit : node.unknown_size(0)};
  return {out};
}

std::unique_ptr<NodePlan> plan_range(const char*, const NodeContext&, const Infos&) {
  return make_plan([](const RunContext&, Inputs inputs, Outputs outputs) {
    visit_range_type(outputs[0].type, [&](auto kind) {
      using T = decltype(kind);
      const T start = *inputs[0].as<T>();
      const T delta = *inputs[2].as<T>();
      T* out = outputs[0].as<T>();
      for (std::int64_t i = 0; i < outputs[0].count(); ++i) {
        if constexpr (std::is_integral_v<T>) {
          const auto offset = static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(delta);
          out[i] = static_cast<T>(static_cast<std::uint64_t>(start) + offset);
        } else {
          out[i] = start + static_cast<T>(i) * delta;
        }
      }
    });
  });
}

}  // namespace

void add_shape_value_ops(Registry* registry) {
  registry->add(make_op("Shape", integers(shape_of, 1)));
  registry->add(make_op("Size", integers(size_of, 0)));
  registry->add(make_op("ConstantOfShape", {.infer = infer_constant, .plan = plan_constant}));
  registry->add(make_op("Range", {.infer = infer_range, .plan = plan_range}));
}

}  // namespace headway
