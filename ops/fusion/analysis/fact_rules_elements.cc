// Rules of the numbers in small integer tensors: what arithmetic makes of elements that are dims.
#include <algorithm>

#include "ops/fusion/analysis/fact_rules.h"

namespace headway::fusion {

std::optional<std::vector<std::int64_t>> FactRules::integers(std::size_t input, const char* attribute) {
  if (!has(input)) return node_.attributes.integers(attribute);
  const auto& elements = in(input).elements;
  if (!elements) return std::nullopt;
  std::vector<std::int64_t> result;
  for (const Dim& one : *elements) {
    if (!one.is_number()) return std::nullopt;
    result.push_back(one.factor);
  }
  return result;
}

void FactRules::range(Fact* out) {
  const auto single = [&](std::size_t i) { return in(i).elements && in(i).elements->size() == 1; };
  if (single(0) && single(1) && single(2) && (*in(0).elements)[0].is(0) && (*in(2).elements)[0].is(1) &&
      facts_.is_size((*in(1).elements)[0])) {
    out->dims = DimList{(*in(1).elements)[0]};
  } else {
    out->dims = unknown_dims(1);
  }
}

void FactRules::constant_of_shape(Fact* out) {
  out->type = has(1) ? in(1).type : DataType::kF32;
  if (!in(0).elements) return;
  out->dims = *in(0).elements;
  for (std::size_t i = 0; i < out->dims->size(); ++i) {
    if (!facts_.is_size((*out->dims)[i])) (*out->dims)[i] = unknown("d", static_cast<int>(i));
  }
  if (!has(1) || !in(1).elements || in(1).elements->size() != 1 || out->dims->size() > 1) return;
  const Dim count = out->dims->empty() ? Dim(1) : (*out->dims)[0];
  if (count.is_number() && count.factor <= 16) {
    out->elements = DimList(static_cast<std::size_t>(count.factor), (*in(1).elements)[0]);
  }
}

std::optional<DimList> FactRules::element_arithmetic() {
  if (node_.inputs.size() == 1) {
    if (node_.op != "Not" || !in(0).elements) return std::nullopt;
    DimList elements = *in(0).elements;
    for (Dim& one : elements) {
      if (!one.is_number()) return std::nullopt;
      one = Dim(one.factor == 0 ? 1 : 0);
    }
    return elements;
  }
  if (node_.inputs.size() != 2 || !in(0).elements || !in(1).elements) return std::nullopt;
  const DimList& a = *in(0).elements;
  const DimList& b = *in(1).elements;
  if (a.size() != b.size() && a.size() != 1 && b.size() != 1) return std::nullopt;
  DimList elements;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const auto one = arithmetic(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
    if (!one) return std::nullopt;
    elements.push_back(*one);
  }
  return elements;
}

std::optional<Dim> FactRules::arithmetic(const Dim& a, const Dim& b) {
  const std::string& op = node_.op;
  if (op == "Mul") return a * b;
  if (op == "Div") {
    if (const auto whole = divided(a, b)) return whole;
  }
  if (op == "Add" && b.is(0)) return a;
  if (op == "Add" && a.is(0)) return b;
  if (op == "Sub" && b.is(0)) return a;
  if ((op == "Max" || op == "Min") && a == b) return a;
  if (op == "Equal" && a == b) return Dim(1);
  if (op == "Equal" &&
      ((b.is_number() && b.factor < 0 && facts_.is_size(a)) || (a.is_number() && a.factor < 0 && facts_.is_size(b)))) {
    return Dim(0);
  }
  if (a.is_number() && b.is_number()) {
    const std::int64_t x = a.factor;
    const std::int64_t y = b.factor;
    if (op == "Add") return Dim(wrapped(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y)));
    if (op == "Sub") return Dim(wrapped(static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)));
    if (op == "Div" && y > 0 && x >= 0) return Dim(x / y);
    if (op == "Max") return Dim(std::max(x, y));
    if (op == "Min") return Dim(std::min(x, y));
    if (op == "Equal") return Dim(x == y);
    return std::nullopt;
  }
  if (op != "Add" && op != "Sub" && op != "Div" && op != "Max" && op != "Min") return std::nullopt;
  const bool size = op != "Sub" && facts_.is_size(a) && facts_.is_size(b);
  return unknowns_.named(op + " " + text(a) + " " + text(b), size);
}

}  // namespace headway::fusion
