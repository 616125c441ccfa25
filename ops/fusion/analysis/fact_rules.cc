// The rules about dims; those about elements of shape arithmetic are in fact_rules_shapes.cc.
#include "ops/fusion/analysis/fact_rules.h"

#include <map>

#include "ops/graph/onnx_type.h"

namespace headway::fusion {

FactRules::Rule FactRules::rule_of(const std::string& op) {
  static const std::map<std::string, Rule> kRules = [] {
    std::map<std::string, Rule> rules;
    const auto add = [&](std::initializer_list<const char*> ops, Rule rule) {
      for (const char* one : ops) rules[one] = rule;
    };
    add({"Softmax",
         "LogSoftmax",
         "LayerNormalization",
         "RMSNormalization",
         "SimplifiedLayerNormalization",
         "Relu",
         "Gelu",
         "Tanh",
         "Sigmoid",
         "Erf",
         "Exp",
         "Log",
         "Sqrt",
         "Abs",
         "Neg",
         "Reciprocal",
         "Sin",
         "Cos",
         "Clip",
         "Identity",
         "Dropout",
         "CumSum",
         "Trilu",
         "RotaryEmbedding",
         "com.microsoft.RotaryEmbedding",
         "Floor",
         "Ceil",
         "Round",
         "Sign",
         "Elu",
         "LeakyRelu",
         "Softplus",
         "Silu",
         "Swish",
         "HardSigmoid",
         "HardSwish"},
        &FactRules::same);
    add({"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Sum", "And", "Or", "Xor"}, &FactRules::elementwise);
    add({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "IsNaN", "IsInf"}, &FactRules::comparison);
    add({"Where"}, &FactRules::where);
    add({"Cast", "CastLike"}, &FactRules::cast);
    add({"Shape", "Size"}, &FactRules::shape);
    add({"Reshape"}, &FactRules::reshape);
    add({"Flatten"}, &FactRules::flatten);
    add({"Squeeze"}, &FactRules::squeeze);
    add({"Unsqueeze"}, &FactRules::unsqueeze);
    add({"Transpose"}, &FactRules::transpose);
    add({"Expand"}, &FactRules::expand);
    add({"Concat"}, &FactRules::concat);
    add({"Split"}, &FactRules::split);
    add({"Slice"}, &FactRules::slice);
    add({"Gather"}, &FactRules::gather);
    add({"GatherND"}, &FactRules::gather_nd);
    add({"Conv"}, &FactRules::conv);
    add({"Tile"}, &FactRules::tile);
    add({"Pad"}, &FactRules::same_rank);
    add({"Range"}, &FactRules::range);
    add({"ConstantOfShape"}, &FactRules::constant_of_shape);
    add({"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd"}, &FactRules::reduce);
    add({"MatMul"}, &FactRules::matmul);
    add({"Gemm"}, &FactRules::gemm);
    add({"Linear"}, &FactRules::linear);
    add({"MultiHeadAttention"}, &FactRules::same);  // as wide as its query
    add({"Attention", "onnx.Attention"}, &FactRules::attention);
    add({"com.microsoft.MultiHeadAttention", "com.microsoft.Attention"}, &FactRules::microsoft_attention);
    return rules;
  }();
  const auto found = kRules.find(op);
  return found == kRules.end() ? nullptr : found->second;
}

std::vector<Fact> FactRules::outputs() {
  const Rule rule = rule_of(node_.op);
  Fact first;
  if (rule != nullptr) {
    first.type = in(0).type;
    (this->*rule)(&first);
  }
  more_.insert(more_.begin(), std::move(first));
  return std::move(more_);
}

const Fact& FactRules::in(std::size_t i) {
  static const Fact kNothing;
  return has(i) ? facts_.of(node_.inputs[i]) : kNothing;
}

Dim FactRules::unknown(const char* what, int i) {
  return unknowns_.named(std::to_string(node_.outputs[0]) + what + std::to_string(i), *what == 'd');
}

DimList FactRules::unknown_dims(int rank) {
  DimList dims;
  for (int i = 0; i < rank; ++i) dims.push_back(unknown("d", i));
  return dims;
}

std::optional<DimList> FactRules::broadcast(const std::optional<DimList>& a, const std::optional<DimList>& b) {
  if (!a || !b) return std::nullopt;
  const DimList& longer = a->size() >= b->size() ? *a : *b;
  const DimList& shorter = a->size() >= b->size() ? *b : *a;
  DimList dims = longer;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    Dim& x = dims[longer.size() - shorter.size() + i];
    const Dim& y = shorter[i];
    if (x == y || y.is(1) || unknowns_.is_cut_of(y, x)) continue;
    if (x.is(1) || y.is_number() || unknowns_.is_cut_of(x, y)) {
      x = y;  // an unknown size that meets a number other than 1 is 1 or that number
    } else if (!x.is_number()) {
      x = unknowns_.named("max " + std::min(text(x), text(y)) + " " + std::max(text(x), text(y)), true);
    }
  }
  return dims;
}

void FactRules::same(Fact* out) {
  out->dims = in(0).dims;
  if (node_.op == "Identity" || node_.op == "Abs") out->elements = in(0).elements;
}

void FactRules::elementwise(Fact* out) {
  out->dims = in(0).dims;
  for (std::size_t i = 1; i < node_.inputs.size(); ++i) out->dims = broadcast(out->dims, in(i).dims);
  out->elements = element_arithmetic();
}

void FactRules::comparison(Fact* out) {
  elementwise(out);
  out->type = DataType::kBool;
}

void FactRules::where(Fact* out) {
  out->type = in(1).type;
  out->dims = broadcast(in(0).dims, broadcast(in(1).dims, in(2).dims));
  const auto& condition = in(0).elements;
  const auto& yes = in(1).elements;
  const auto& no = in(2).elements;
  if (!condition || !yes || !no) return;
  const std::size_t count = std::max({condition->size(), yes->size(), no->size()});
  DimList elements;
  for (std::size_t i = 0; i < count; ++i) {
    const auto pick = [&](const DimList& list) { return list.size() == 1 ? list[0] : list[i]; };
    const Dim chosen = pick(*condition);
    if (!chosen.is_number()) return;
    elements.push_back(chosen.factor != 0 ? pick(*yes) : pick(*no));
  }
  out->elements = std::move(elements);
}

void FactRules::cast(Fact* out) {
  out->type = node_.op == "Cast" ? onnx_type(node_.attributes.integer("to", 0)) : in(1).type;
  out->dims = in(0).dims;
  const bool whole = out->type == DataType::kI64 || out->type == DataType::kI32;
  if (whole && in(0).type != DataType::kF32) out->elements = in(0).elements;
}

void FactRules::transpose(Fact* out) {
  if (!in(0).dims) return;
  const DimList& dims = *in(0).dims;
  const std::vector<std::int64_t> perm = node_.attributes.integers("perm");
  out->dims.emplace();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t axis = perm.empty() ? dims.size() - 1 - i : static_cast<std::size_t>(perm[i]);
    if (axis >= dims.size()) return out->dims.reset();
    out->dims->push_back(dims[axis]);
  }
}

void FactRules::expand(Fact* out) {
  if (!in(1).elements) return;
  DimList wanted = *in(1).elements;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!facts_.is_size(wanted[i])) wanted[i] = unknown("d", static_cast<int>(i));
  }
  out->dims = broadcast(in(0).dims, wanted);
}

void FactRules::same_rank(Fact* out) {
  if (in(0).dims) out->dims = unknown_dims(in(0).rank());
}

void FactRules::tile(Fact* out) {
  same_rank(out);
  const auto& repeats = in(1).elements;
  if (!out->dims || !repeats || repeats->size() != out->dims->size()) return;
  for (std::size_t i = 0; i < repeats->size(); ++i) {
    if (facts_.is_size((*repeats)[i])) (*out->dims)[i] = (*in(0).dims)[i] * (*repeats)[i];
  }
}

void FactRules::conv(Fact* out) {
  same_rank(out);
  const auto& weight = in(1).dims;
  if (!out->dims || !weight || out->dims->size() < 2 || weight->empty()) return;
  (*out->dims)[0] = (*in(0).dims)[0];
  (*out->dims)[1] = (*weight)[0];
}

void FactRules::gather_nd(Fact* out) {
  const auto& from = in(0).dims;
  const auto& at = in(1).dims;
  const std::int64_t batch = node_.attributes.integer("batch_dims", 0);
  if (!from || !at || at->empty() || !at->back().is_number() || batch < 0) return;
  const std::int64_t gone = batch + at->back().factor;
  if (gone < batch || gone > static_cast<std::int64_t>(from->size())) return;
  DimList dims(at->begin(), at->end() - 1);
  dims.insert(dims.end(), from->begin() + gone, from->end());
  out->dims = std::move(dims);
}

void FactRules::reduce(Fact* out) {
  if (!in(0).dims) return;
  DimList dims = *in(0).dims;
  const auto axes = integers(1, "axes");
  if (!axes) return;
  const bool keep = node_.attributes.integer("keepdims", 1) != 0;
  std::vector<bool> gone(dims.size(), axes->empty() && node_.attributes.integer("noop_with_empty_axes", 0) == 0);
  for (std::int64_t axis : *axes) {
    if (axis < 0) axis += static_cast<std::int64_t>(dims.size());
    if (axis < 0 || axis >= static_cast<std::int64_t>(dims.size())) return;
    gone[static_cast<std::size_t>(axis)] = true;
  }
  out->dims.emplace();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!gone[i]) out->dims->push_back(dims[i]);
    if (gone[i] && keep) out->dims->push_back(1);
  }
}

}  // namespace headway::fusion
