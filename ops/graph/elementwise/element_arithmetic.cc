// One element at a time.
#include "ops/graph/elementwise/element_arithmetic.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "ops/graph/infer.h"

namespace headway {
namespace {

std::int64_t wrapped(std::uint64_t value) { return static_cast<std::int64_t>(value); }

std::optional<Dim> of_numbers(std::string_view op, std::int64_t x, std::int64_t y) {
  if (op == "Add") return Dim(wrapped(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y)));
  if (op == "Sub") return Dim(wrapped(static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)));
  if (op == "Div" && y > 0 && x >= 0) return Dim(x / y);
  if (op == "Max") return Dim(std::max(x, y));
  if (op == "Min") return Dim(std::min(x, y));
  if (op == "Equal") return Dim(x == y);
  return std::nullopt;
}

std::optional<Dim> of_two(std::string_view op, const InferContext& node, const Dim& a, const Dim& b) {
  if (op == "Mul") return a * b;
  if (op == "Div") {
    if (const auto whole = divided(a, b)) return whole;
  }
  if (op == "Add" && b.is(0)) return a;
  if (op == "Add" && a.is(0)) return b;
  if (op == "Sub" && b.is(0)) return a;
  if ((op == "Max" || op == "Min") && a == b) return a;
  if (op == "Equal" && a == b) return Dim(1);
  if (a.is_number() && b.is_number()) return of_numbers(op, a.factor, b.factor);
  if (op == "Equal" &&
      ((b.is_number() && b.factor < 0 && is_size(node, a)) || (a.is_number() && a.factor < 0 && is_size(node, b)))) {
    return Dim(0);
  }
  if (op != "Add" && op != "Sub" && op != "Div" && op != "Max" && op != "Min") return std::nullopt;
  const bool size = op != "Sub" && is_size(node, a) && is_size(node, b);
  return node.unknowns->named(std::string(op) + " " + text(a) + " " + text(b), size);
}

/// Numbers of 32 bits wrap where those of 64 do not.
bool fits(const ValueInfo& input, const Dim& number) {
  return input.type != DataType::kI32 || !number.is_number() ||
         number.factor == static_cast<std::int32_t>(static_cast<std::uint32_t>(number.factor));
}

}  // namespace

std::optional<DimList> element_arithmetic(const char* op, const InferContext& node) {
  if (!node.inputs[0].elements) return std::nullopt;
  const DimList& a = *node.inputs[0].elements;
  const std::string_view name = op;
  if (node.inputs.size() == 1) {
    if (name == "Abs") {
      if (!std::all_of(a.begin(), a.end(), [&](const Dim& one) { return is_size(node, one); })) return std::nullopt;
      return a;
    }
    if (name != "Not" || !all_numbers(a)) return std::nullopt;
    DimList elements;
    for (const Dim& one : a) elements.emplace_back(one.factor == 0 ? 1 : 0);
    return elements;
  }
  if (node.inputs.size() != 2 || !node.inputs[1].elements) return std::nullopt;
  const DimList& b = *node.inputs[1].elements;
  if (a.size() != b.size() && a.size() != 1 && b.size() != 1) return std::nullopt;
  DimList elements;
  const std::size_t count = a.size() == 1 ? b.size() : a.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto one = of_two(name, node, a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
    if (!one || !fits(node.inputs[0], *one)) return std::nullopt;
    elements.push_back(*one);
  }
  return elements;
}

}  // namespace headway
