// One function for each thing that must come apart: operands, masks, weights, result.
#include "ops/fusion/attention/torch_mha_heads.h"

#include <algorithm>
#include <memory>

namespace headway::fusion {
namespace {

const std::vector<std::int64_t> kJoinedAxes = {1, 0, 2};    // of [B·H, S, D] in [S, B·H, D]
const std::vector<std::int64_t> kSplitAxes = {1, 2, 0, 3};  // of [B, H, S, D] in [S, B, H, D]

class Split {
 public:
  Split(Draft* draft, Facts* facts, int before) : draft_(*draft), facts_(*facts), before_(before) {}

  bool run(Scores* scores, AttentionParts* parts) {
    Scores split_scores = *scores;
    AttentionParts split_parts = *parts;
    for (Operand* operand : {&split_parts.query, &split_parts.key, &split_parts.value}) {
      if (!split(operand)) return false;
    }
    for (ScoreTerm& term : split_scores.terms) {
      if (!split(term.value != kNoValue ? &term.value : &term.condition, 0)) return false;
    }
    if (!weights_split(parts->weights) || !split_result(&split_parts)) return false;
    *scores = std::move(split_scores);
    *parts = std::move(split_parts);
    return true;
  }

 private:
  /// Heads by which the first size, batch · heads, exceeds the second; all must agree.
  bool agree(const Dim& joined, const Dim& batch) {
    const auto heads = divided(joined, batch);
    if (!heads || !heads->is_number() || heads->factor < 1) return false;
    if (heads_ == 0) heads_ = heads->factor;
    return heads_ == heads->factor;
  }

  bool split(Operand* operand) {
    if (operand->axes != kJoinedAxes) return false;
    const Node* join = draft_.maker(operand->value, "Reshape");
    const auto joined = facts_.of(operand->value).dims;
    const auto tokens = join != nullptr ? facts_.of(join->inputs[0]).dims : std::nullopt;
    if (!joined || !tokens || tokens->size() != 3 || !(*joined)[2].is_number()) return false;
    // With batch, heads and width shown, as many elements leave the length no choice.
    if (!agree((*joined)[1], (*tokens)[1]) || !(*tokens)[2].is(heads_ * (*joined)[2].factor)) return false;
    // A length that the file gives as a number is the only one that runs.
    const std::int64_t length = (*joined)[0].is_number() && (*joined)[0].factor > 0 ? (*joined)[0].factor : 0;
    if (length == 0 && (*joined)[0] != (*tokens)[0]) return false;
    const std::int64_t shape[] = {length, 0, heads_, (*joined)[2].factor};  // 0: as it is
    auto tensor = std::make_shared<Tensor>(DataType::kI64, Dims{4});
    std::copy(std::begin(shape), std::end(shape), tensor->data<std::int64_t>());
    const ValueId dims = draft_.add_constant(draft_.value_name(operand->value) + "/heads", std::move(tensor));
    const std::string name = draft_.node(draft_.producer(operand->value)).name + "/heads";
    operand->value = draft_.add_node({"Reshape", name, {join->inputs[0], dims}, {}, 1, before_}).front();
    operand->axes = kSplitAxes;
    return true;
  }

  /// A mask [B·H, ·, ·] was [B, H, ·, ·] before, or is a sum with such a one; one of fewer axes, or of one for all,
  /// broadcasts as it is.
  bool split(ValueId* mask, int depth) {
    const auto joined = facts_.of(*mask).dims;
    if (!joined || joined->size() > 3) return false;
    if (joined->size() < 3 || (*joined)[0].is(1)) return true;
    if (const Node* sum = draft_.maker(*mask, "Add"); sum != nullptr && depth < 4) {
      std::vector<ValueId> sides = sum->inputs;
      for (ValueId& side : sides) {
        if (!split(&side, depth + 1)) return false;
      }
      *mask = draft_.add_node({"Add", sum->name + "/heads", sides, {}, 1, before_}).front();
      return true;
    }
    const Node* join = draft_.maker(*mask, "Reshape");
    const auto apart = join != nullptr ? facts_.of(join->inputs[0]).dims : std::nullopt;
    if (!apart || apart->size() != 4 || !keeps_last_two(&facts_, join->inputs[0], *mask)) return false;
    if (!(*apart)[1].is(heads_) || !agree((*joined)[0], (*apart)[0])) return false;
    *mask = join->inputs[0];
    return true;
  }

  /// Whoever reads the weights besides the core takes them apart in the same way.
  bool weights_split(ValueId weights) {
    if (weights == kNoValue) return true;
    if (draft_.is_output(weights)) return false;
    for (const int index : draft_.consumers(weights)) {
      const Node& node = draft_.node(index);
      if (node.op == "MatMul" || node.op == "Einsum") continue;
      const auto& dims = facts_.of(node.outputs[0]).dims;
      if (node.op != "Reshape" || !dims || dims->size() != 4 || !(*dims)[1].is(heads_)) return false;
      if (!keeps_last_two(&facts_, weights, node.outputs[0])) return false;
    }
    return true;
  }

  /// [B·H, S, D] -> Transpose [S, B·H, D] -> Reshape, which may as well read [S, B, H, D].
  bool split_result(AttentionParts* parts) {
    if (!std::is_sorted(parts->out_axes.begin(), parts->out_axes.end())) return false;
    const Node* transpose = only_reader(parts->out);
    if (transpose == nullptr || transpose->op != "Transpose") return false;
    if (transpose->attributes.integers("perm") != kJoinedAxes) return false;
    const Node* reshape = only_reader(transpose->outputs[0]);
    if (reshape == nullptr || reshape->op != "Reshape" || reshape->inputs.size() != 2) return false;
    // A 0 in its shape would stand for another axis then.
    const auto& shape = facts_.of(reshape->inputs[1]).elements;
    if (!shape || std::any_of(shape->begin(), shape->end(), [](const Dim& dim) { return dim.is(0); })) return false;
    parts->out = transpose->outputs[0];
    parts->out_axes = kSplitAxes;
    return true;
  }

  const Node* only_reader(ValueId value) const {
    if (!draft_.has_one_consumer(value)) return nullptr;
    const Node& node = draft_.node(draft_.consumers(value)[0]);
    return node.guards.empty() ? &node : nullptr;
  }

  Draft& draft_;
  Facts& facts_;
  int before_;
  std::int64_t heads_ = 0;
};

}  // namespace

bool split_joined_heads(Draft* draft, Facts* facts, Scores* scores, AttentionParts* parts) {
  return Split(draft, facts, parts->before).run(scores, parts);
}

}  // namespace headway::fusion
