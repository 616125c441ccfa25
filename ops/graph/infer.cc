// The shared looks at a node.
#include "ops/graph/infer.h"

#include <algorithm>
#include <cstring>

namespace headway {
namespace {

bool is_allowed(const std::optional<DataType>& type, std::initializer_list<DataType> allowed) {
  return !type || std::find(allowed.begin(), allowed.end(), *type) != allowed.end();
}

/// A view may lie at any alignment.
std::int64_t integer_at(const ConstTensorView& view, std::int64_t i) {
  if (view.type == DataType::kI64) {
    std::int64_t value = 0;
    std::memcpy(&value, view.data + i * static_cast<std::int64_t>(sizeof(value)), sizeof(value));
    return value;
  }
  std::int32_t value = 0;
  std::memcpy(&value, view.data + i * static_cast<std::int64_t>(sizeof(value)), sizeof(value));
  return value;
}

/// An unknown size that meets a number other than 1 is 1 or that number.
Dim joined(const InferContext& node, const Dim& x, const Dim& y) {
  if (x == y || y.is(1)) return x;
  if (x.is(1) || y.is_number()) return y;
  if (x.is_number() || node.unknowns->is_cut_of(y, x)) return x;
  if (node.unknowns->is_cut_of(x, y)) return y;
  return node.unknowns->named("max " + std::min(text(x), text(y)) + " " + std::max(text(x), text(y)), true);
}

}  // namespace

void check_inputs(const char* op, const InferContext& node, std::size_t least, std::size_t most) {
  require(node.inputs.size() >= least && node.inputs.size() <= most, op, " has ", node.inputs.size(),
          " inputs, expected ", least, " to ", most);
  for (std::size_t i = 0; i < least; ++i) require(node.inputs[i].present, op, " input ", i, " is missing");
}

void check_outputs(const char* op, const InferContext& node, int most) {
  require(node.num_outputs <= most, op, " has ", node.num_outputs, " outputs, expected at most ", most);
}

void check_type(const char* op, const InferContext& node, std::size_t input, std::initializer_list<DataType> allowed) {
  const std::optional<DataType>& type = node.inputs[input].type;
  if (is_allowed(type, allowed)) return;
  std::string names;
  for (const DataType other : allowed) names += (names.empty() ? "" : ", ") + std::string(type_name(other));
  fail(ErrorCode::kInvalidArgument, op, " input ", input, " is ", type_name(*type), ", expected ",
       allowed.size() == 1 ? "" : "one of ", names);
}

void check_same_type(const char* op, const InferContext& node, std::size_t a, std::size_t b) {
  const auto& first = node.inputs[a].type;
  const auto& second = node.inputs[b].type;
  if (!first || !second) return;
  require(*first == *second, op, " inputs ", a, " and ", b, " are ", type_name(*first), " and ", type_name(*second),
          ", expected equal types");
}

void check_f32(const char* op, const InferContext& node, std::size_t input) {
  check_type(op, node, input, {DataType::kF32});
}

void check_f32_or_bf16(const char* op, const InferContext& node, std::size_t input) {
  const auto& type = node.inputs[input].type;
  const auto& first = node.inputs[0].type;
  if (!type) return;
  require(*type == DataType::kF32 || *type == DataType::kBF16, op, " input ", input, " is ", type_name(*type),
          ", expected f32 or bf16");
  require(!first || *type == *first, op, " input ", input, " is ", type_name(*type), ", expected ",
          type_name(first.value_or(*type)), " as input 0");
}

void check_one_element(const char* op, const InferContext& node, std::size_t input, const std::string& what) {
  if (!has_input(node, input) || !node.inputs[input].dims) return;
  const DimList& dims = *node.inputs[input].dims;
  require(may_equal(count_of(dims), Dim(1)), op, ' ', what, " has dims ", dims, ", expected one element");
}

int normalised_axis(const char* op, std::int64_t axis, std::size_t size) {
  const auto rank = static_cast<std::int64_t>(size);
  require(axis >= -rank && axis < rank, op, " axis is ", axis, ", expected ", -rank, " to ", rank - 1);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> normalised_axes(const char* op, const std::vector<std::int64_t>& axes, std::size_t rank) {
  require(axes.size() <= rank, op, " names ", axes.size(), " axes, expected at most ", rank);
  std::vector<int> result;
  for (const std::int64_t axis : axes) {
    const int at = normalised_axis(op, axis, rank);
    require(std::find(result.begin(), result.end(), at) == result.end(), op, " names axis ", at,
            " twice, expected once");
    result.push_back(at);
  }
  return result;
}

Dim broadcast_dim(const InferContext& node, const Dim& a, const Dim& b) { return joined(node, a, b); }

std::optional<DimList> broadcast(const char* op, const InferContext& node, const std::optional<DimList>& a,
                                 const std::optional<DimList>& b) {
  if (!a || !b) return std::nullopt;
  const DimList& shorter = a->size() >= b->size() ? *b : *a;
  DimList dims = a->size() >= b->size() ? *a : *b;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    Dim& x = dims[dims.size() - shorter.size() + i];
    const Dim& y = shorter[i];
    require(may_equal(x, y) || x.is(1) || y.is(1), op, " inputs have dims ", *a, " and ", *b, ", expected ", x, " and ",
            y, " to be equal or one of them 1");
    x = joined(node, x, y);
  }
  return dims;
}

bool may_broadcast_to(const DimList& from, const DimList& to) {
  if (from.size() > to.size()) return false;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    const Dim& x = from[from.size() - i];
    if (!x.is(1) && !may_equal(x, to[to.size() - i])) return false;
  }
  return true;
}

std::optional<DimList> elements_of(const char* op, const InferContext& node, std::size_t input, const char* what) {
  require(has_input(node, input), op, " input ", input, " (", what, ") is missing");
  check_type(op, node, input, {DataType::kI64, DataType::kI32});
  const ValueInfo& info = node.inputs[input];
  require(info.rank() <= 1, op, ' ', what, " has rank ", info.rank(), ", expected 0 or 1");
  if (input < node.constants.size() && node.constants[input]) {
    const ConstTensorView& view = node.constants[input];
    DimList elements(static_cast<std::size_t>(view.count()));
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = integer_at(view, static_cast<std::int64_t>(i));
    return elements;
  }
  if (!info.elements && node.is_final()) {
    fail(ErrorCode::kUnsupported, op, " input ", input, " (", what,
         ") is computed from data at run time, expected to follow from the shapes");
  }
  return info.elements;
}

std::optional<std::vector<std::int64_t>> known_integers(const char* op, const InferContext& node, std::size_t input,
                                                        const char* what) {
  const std::optional<DimList> elements = elements_of(op, node, input, what);
  if (!elements || !all_numbers(*elements)) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const Dim& element : *elements) numbers.push_back(element.factor);
  return numbers;
}

std::optional<std::vector<std::int64_t>> integers_of(const char* op, const InferContext& node, std::size_t input,
                                                     const char* what, bool* given) {
  const bool as_input = has_input(node, input);
  if (given != nullptr) *given = as_input || node.attributes.has(what);
  if (as_input) return known_integers(op, node, input, what);
  return node.attributes.integers(what);
}

Dim sum_of(const InferContext& node, const Dim& a, const Dim& b) {
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  if (!a.is_number() || !b.is_number()) return node.unknowns->named("sum " + text(a) + " " + text(b), true);
  std::int64_t sum = 0;
  require(!__builtin_add_overflow(a.factor, b.factor, &sum), "lengths ", a, " and ", b, " together do not fit 63 bits");
  return sum;
}

bool is_size(const InferContext& node, const Dim& dim) {
  return node.is_final() ? dim.factor >= 0 : node.unknowns->is_size(dim);
}

}  // namespace headway
