// Operators whose values follow from shapes: Shape, Size, ConstantOfShape, Range. The first two are known as soon as a
// shape is planned; the others are filled from inputs that are. Knows no arithmetic of whole tensors.
#include "ops/base/numeric.h"
#include "ops/base/parallel_copy.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// The part [start, end) of the input's dims; bounds count from the end when negative and are clamped.
std::vector<std::int64_t> shape_of(const char* op, const NodeContext& node) {
  check_inputs(op, node, 1, 1);
  const Dims& dims = node.inputs[0].dims;
  const std::int64_t rank = dims.rank();
  const auto bound = [&](const char* key, std::int64_t otherwise) {
    const std::int64_t at = node.attributes.integer(key, otherwise);
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t begin = bound("start", 0);
  const std::int64_t end = std::max(begin, bound("end", rank));
  return std::vector<std::int64_t>(dims.begin() + begin, dims.begin() + end);
}

std::vector<std::int64_t> size_of(const char* op, const NodeContext& node) {
  check_inputs(op, node, 1, 1);
  return {element_count(node.inputs[0].dims)};
}

/// `rank` of the result is 1 or, for one number, 0.
OpFunctions integers(std::vector<std::int64_t> (*values_of)(const char*, const NodeContext&), int rank) {
  const auto dims_of = [rank](const std::vector<std::int64_t>& values) {
    return rank == 0 ? Dims{} : Dims{static_cast<std::int64_t>(values.size())};
  };
  return {.infer = [=](const char* op, const NodeContext& node) -> Infos {
            return {{DataType::kI64, dims_of(values_of(op, node))}};
          },
          .plan =
              [=](const char* op, const NodeContext& node, const Infos&) {
                return make_plan([values = values_of(op, node)](const RunContext&, Inputs, Outputs outputs) {
                  std::copy(values.begin(), values.end(), outputs[0].as<std::int64_t>());
                });
              },
          .known_values =
              [=](const NodeContext& node) {
                const std::vector<std::int64_t> values = values_of("Shape", node);
                std::vector<Tensor> known;
                known.emplace_back(DataType::kI64, dims_of(values));
                std::copy(values.begin(), values.end(), known[0].data<std::int64_t>());
                return known;
              }};
}

/// The value is a second input of one element, f32 0 when there is none.
Infos infer_constant(const char* op, const NodeContext& node) {
  check_inputs(op, node, 1, 2);
  const Dims dims{std::span<const std::int64_t>(known_integers(op, node, 0, "shape"))};
  element_count(dims);
  if (!has_input(node, 1)) return {{DataType::kF32, dims}};
  require(element_count(node.inputs[1].dims) == 1, op, " value has dims ", node.inputs[1].dims,
          ", expected one element");
  return {{node.inputs[1].type, dims}};
}

std::unique_ptr<NodePlan> plan_constant(const char*, const NodeContext&, const Infos&) {
  return make_plan([](const RunContext& context, Inputs inputs, Outputs outputs) {
    const float zero = 0;
    const ConstTensorView value = optional_input(inputs, 1);
    const ConstTensorView source = value ? value.reshaped({}) : ConstTensorView(view_of(&zero, Dims{}));
    parallel_copy(source.broadcast_to(outputs[0].dims), outputs[0], context.threads);
  });
}

template <class T>
T known_number(const char* op, const NodeContext& node, std::size_t input) {
  static constexpr const char* kNames[] = {"start", "limit", "delta"};
  const bool known = input < node.constants.size() && node.constants[input];
  if (!known) {
    fail(ErrorCode::kUnsupported, op, " input ", input, " (", kNames[input],
         ") is computed from data at run time, expected to follow from the shapes");
  }
  const ConstTensorView& view = node.constants[input];
  require(view.count() == 1, op, ' ', kNames[input], " has ", view.count(), " elements, expected 1");
  return *view.as<T>();
}

/// Steps from start until limit is reached, in unsigned numbers: the distance may not fit a signed one.
std::int64_t integer_steps(std::int64_t start, std::int64_t limit, std::int64_t delta) {
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  const auto from = static_cast<std::uint64_t>(delta > 0 ? start : limit);
  const auto to = static_cast<std::uint64_t>(delta > 0 ? limit : start);
  const std::uint64_t step = delta > 0 ? static_cast<std::uint64_t>(delta) : 0 - static_cast<std::uint64_t>(delta);
  return static_cast<std::int64_t>((to - from - 1) / step + 1);
}

template <class T>
std::int64_t range_length(const char* op, const NodeContext& node) {
  const auto start = known_number<T>(op, node, 0);
  const auto limit = known_number<T>(op, node, 1);
  const auto delta = known_number<T>(op, node, 2);
  require(delta != 0, op, " delta is 0, expected another number");
  if constexpr (std::is_integral_v<T>) {
    const std::int64_t length = integer_steps(start, limit, delta);
    require(length >= 0, op, " from ", start, " to ", limit, " has more elements than fit 63 bits");
    return length;
  } else {
    const double steps =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
    require(std::isfinite(steps) && steps < 0x1p53, op, " from ", start, " to ", limit, " by ", delta, " has ", steps,
            " elements, expected a finite number");
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(steps));
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

Infos infer_range(const char* op, const NodeContext& node) {
  check_inputs(op, node, 3, 3);
  check_type(op, node, 0, {DataType::kF32, DataType::kF64, DataType::kI32, DataType::kI64});
  check_same_type(op, node, 0, 1);
  check_same_type(op, node, 0, 2);
  const DataType type = node.inputs[0].type;
  return visit_range_type(type, [&](auto kind) -> Infos { return {{type, {range_length<decltype(kind)>(op, node)}}}; });
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
