// The parts together: scores above, probabilities below, operands at the sides.
#include "ops/fusion/attention/attention_core.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ops/fusion/attention/attention_node.h"
#include "ops/fusion/attention/einsum.h"
#include "ops/fusion/attention/mask.h"
#include "ops/fusion/attention/torch_mha_heads.h"
#include "runtime/base/check.h"

namespace headway::fusion {
namespace {

constexpr int kDeep = 1000;  // below the Softmax: the scores were read to the end

/// What hangs below the Softmax.
struct Below {
  int product = -1;            ///< number of the MatMul or Einsum with the values
  ValueId weights = kNoValue;  ///< probabilities that somebody else reads too
  bool guarded = false;        ///< NaN becomes 0: a row that sees no key is 0
  bool reshaped = false;
  std::vector<ValueId> apart;  ///< [B, H, S, S] that a Reshape reads or makes
};

class Core {
 public:
  Core(int softmax, Draft* draft, Facts* facts, Failure* failure)
      : softmax_(softmax), draft_(*draft), facts_(*facts), failure_(*failure) {}

  int fuse(FusedGroup* group) {
    Scores scores;
    Below below;
    if (!softmax_over_keys()) return -1;
    if (!read_scores(draft_, &facts_, draft_.node(softmax_).inputs[0], &scores, &failure_)) return -1;
    if (!read_below(&below)) return -1;
    const auto upper = score_product(draft_.node(scores.product), &facts_);
    if (!upper)
      return fail(draft_.describe(draft_.node(scores.product).outputs[0]) + " is no product of queries and keys");
    const auto lower = context_product(draft_.node(below.product), &facts_);
    if (!lower) return fail(draft_.describe(draft_.node(below.product).outputs[0]) + " is no product with values");
    AttentionParts parts;
    parts.query = upper->query;
    parts.key = upper->key;
    parts.value = lower->value;
    const bool reshaped = scores.reshaped || below.reshaped;
    const bool joined = upper->query.rank() == 3 && reshaped;
    if (!read_operands(joined, &parts)) return -1;
    std::vector<ValueId> apart = scores.apart;
    apart.insert(apart.end(), below.apart.begin(), below.apart.end());
    if (reshaped && !same_batch_and_heads(parts, joined, apart)) return -1;
    // One node gives both context and probabilities: values made of the latter would close a cycle.
    if (below.weights != kNoValue && comes_from_softmax(parts.value.value)) {
      return fail(draft_.describe(parts.value.value) + " is made of the probabilities that it is multiplied by");
    }
    parts.out = draft_.node(below.product).outputs[0];
    parts.out_axes = lower->out_axes;
    parts.weights = below.weights;
    parts.name = draft_.node(softmax_).name;
    parts.before = below.product;
    if (joined && !split_out(&parts)) return -1;
    if (!joined && parts.query.rank() == 3) split_joined_heads(&draft_, &facts_, &scores, &parts);
    if (parts.query.rank() == 3 && !std::is_sorted(parts.out_axes.begin(), parts.out_axes.end())) {
      return fail(draft_.describe(parts.out) + " gives another order than batch, query, width");
    }
    if (!fit_weights(&parts)) return -1;

    const auto mask =
        make_mask(scores, {parts.query.rank(), reshaped, parts.before, parts.name}, &draft_, &facts_, &failure_);
    if (!mask) return -1;
    parts.mask = *mask;
    parts.scale = scores.scale * parts.query.scale * parts.key.scale;
    if (!std::isfinite(parts.scale)) return fail("the scale is not finite");
    parts.attributes.set("softcap", static_cast<float>(scores.softcap));
    parts.attributes.set("empty_row", std::string(below.guarded ? "zero" : "nan"));
    if (mask->value != kNoValue) parts.attributes.set("short_mask", std::int64_t{0});
    // Values of more batch entries or heads than the scores give a wider result, but no wider probabilities.
    if (parts.weights != kNoValue) parts.attributes.set("broadcast", std::int64_t{0});
    multiply_query(scores, &parts);
    return make_attention(parts, &draft_, &facts_, group);
  }

 private:
  bool refuse(const std::string& edge) {
    failure_.note(kDeep, edge);
    return false;
  }
  int fail(const std::string& edge) { return refuse(edge) ? 0 : -1; }

  bool softmax_over_keys() {
    const Node& node = draft_.node(softmax_);
    const std::int64_t axis = node.attributes.integer("axis", -1);
    const int rank = facts_.rank(node.outputs[0]);
    if (axis == -1 || (rank > 0 && axis == rank - 1)) return true;
    failure_.note(0,
                  draft_.describe(node.outputs[0]) + " is over axis " + std::to_string(axis) + ", expected the last");
    return false;
  }

  /// The Where of Where(IsNaN(p), 0, p), or −1.
  int guard_of(ValueId p, const std::vector<int>& uses) {
    for (const int index : uses) {
      const Node& node = draft_.node(index);
      if (node.op != "Where" || node.inputs[2] != p || facts_.scalar(node.inputs[1]) != 0.0) continue;
      const Node* test = draft_.maker(node.inputs[0], "IsNaN");
      if (test != nullptr && test->inputs[0] == p && draft_.has_one_consumer(node.inputs[0])) return index;
    }
    return -1;
  }

  bool read_below(Below* below) {
    ValueId p = draft_.node(softmax_).outputs[0];
    for (int step = 0; step < 8; ++step) {
      const std::vector<int> uses = draft_.consumers(p);
      const bool alone = uses.size() == 1 && !draft_.is_output(p);
      if (const int guard = guard_of(p, uses); guard >= 0) {
        if (uses.size() != 2 || draft_.is_output(p) || below->weights != kNoValue) {
          return refuse(draft_.describe(p) + " has another consumer in front of the guard against NaN");
        }
        below->guarded = true;
        p = draft_.node(guard).outputs[0];
        continue;
      }
      std::vector<int> products, reshapes;
      for (const int index : uses) {
        const Node& node = draft_.node(index);
        const bool left = node.inputs[0] == p && node.guards.empty();
        if (left && (node.op == "MatMul" || node.op == "Einsum") && node.inputs[1] != p) products.push_back(index);
        if (left && node.op == "Reshape" && keeps_last_two(&facts_, p, node.outputs[0])) reshapes.push_back(index);
      }
      if (products.size() == 1) {
        if (!alone && !set_weights(p, below)) return false;
        below->product = products[0];
        return true;
      }
      if (products.empty() && reshapes.size() == 1) {
        if (!alone && !set_weights(p, below)) return false;
        below->reshaped = true;
        for (const ValueId value : {p, draft_.node(reshapes[0]).outputs[0]}) {
          if (facts_.rank(value) == 4) below->apart.push_back(value);
        }
        p = draft_.node(reshapes[0]).outputs[0];
        continue;
      }
      const std::string reader =
          uses.empty() ? "the output of the graph" : draft_.describe(draft_.node(uses[0]).outputs[0]);
      return refuse(draft_.describe(p) + " goes to " + reader + ", expected a product with the values");
    }
    return refuse("the probabilities reach no product with the values");
  }

  bool comes_from_softmax(ValueId value) const {
    std::vector<bool> seen(static_cast<std::size_t>(draft_.num_nodes()));
    std::vector<ValueId> open{value};
    while (!open.empty()) {
      const int node = draft_.producer(open.back());
      open.pop_back();
      if (node == softmax_) return true;
      if (node < 0 || seen[static_cast<std::size_t>(node)]) continue;
      seen[static_cast<std::size_t>(node)] = true;
      const std::vector<ValueId>& inputs = draft_.node(node).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return false;
  }

  bool set_weights(ValueId p, Below* below) {
    if (below->weights != kNoValue) return refuse(draft_.describe(p) + " is read in two forms");
    below->weights = p;
    return true;
  }

  bool read_operands(bool joined, AttentionParts* parts) {
    for (Operand* operand : {&parts->query, &parts->key, &parts->value}) {
      operand->comes_apart = joined || operand->rank() == 4;
      *operand = peel(draft_, &facts_, *operand);
      if (joined && operand->rank() != 4) {
        return refuse(draft_.describe(operand->value) + " cannot be shown to join batch and heads");
      }
      const auto type = facts_.type(operand->value);
      if (type == DataType::kF32) continue;
      return refuse(draft_.describe(operand->value) + " is " + (type ? headway::type_name(*type) : "of unknown type") +
                    ", expected f32");
    }
    return true;
  }

  /// A Reshape could as well take batch and heads apart in another way.
  bool same_batch_and_heads(const AttentionParts& parts, bool joined, const std::vector<ValueId>& apart) {
    const auto differs = [&](const std::string& what) {
      return refuse(what + " cannot be shown to have the batch and the heads of the queries");
    };
    for (const int axis : {0, 1}) {
      const auto expected = operand_dim(&facts_, parts.query, axis);
      if (!expected) return differs(draft_.describe(parts.query.value));
      for (const Operand* operand : {&parts.key, &parts.value}) {
        if (joined && operand_dim(&facts_, *operand, axis) != expected) return differs(draft_.describe(operand->value));
      }
      for (const ValueId value : apart) {
        if (facts_.dim(value, axis) != expected) return differs(draft_.describe(value));
      }
    }
    return true;
  }

  /// [B·H, S, D] after the product must come apart again.
  bool split_out(AttentionParts* parts) {
    const std::vector<int> uses = draft_.consumers(parts->out);
    if (uses.size() == 1 && !draft_.is_output(parts->out)) {
      const Node& node = draft_.node(uses[0]);
      const bool splits = node.op == "Reshape" && node.guards.empty() && facts_.rank(node.outputs[0]) == 4;
      if (splits && keeps_last_two(&facts_, parts->out, node.outputs[0])) {
        if (!same_batch_and_heads(*parts, true, {node.outputs[0]})) return false;
        parts->out = node.outputs[0];
        parts->out_axes = {0, 1, 2, 3};
        return true;
      }
    }
    return refuse(draft_.describe(parts->out) + " does not come apart into batch and heads");
  }

  /// Weights of rank 3 beside an attention of rank 4 are fine where all who read them take them apart.
  bool fit_weights(AttentionParts* parts) {
    if (parts->weights == kNoValue || facts_.rank(parts->weights) == parts->query.rank()) return true;
    std::vector<ValueId> apart;
    for (const int index : draft_.consumers(parts->weights)) {
      const Node& node = draft_.node(index);
      if (node.op == "MatMul" || node.op == "Einsum") continue;
      const bool splits = node.op == "Reshape" && facts_.rank(node.outputs[0]) == parts->query.rank();
      if (!splits || !keeps_last_two(&facts_, parts->weights, node.outputs[0])) {
        return refuse(draft_.describe(node.outputs[0]) + " reads probabilities of joined batch and heads");
      }
      if (!same_batch_and_heads(*parts, false, {node.outputs[0]})) return false;
      apart.push_back(node.outputs[0]);
    }
    if (draft_.is_output(parts->weights) || apart.empty()) {
      return refuse(draft_.describe(parts->weights) + " leaves the graph with joined batch and heads");
    }
    parts->weights = apart[0];
    for (const ValueId other : apart) {
      if (other != apart[0]) draft_.replace(other, apart[0]);
    }
    return true;
  }

  /// A scale that only the run knows stays in front of the queries.
  void multiply_query(const Scores& scores, AttentionParts* parts) {
    const auto apply = [&](const char* op, const std::vector<ValueId>& by) {
      for (const ValueId one : by) {
        parts->query.value =
            draft_.add_node({op, parts->name + "/scale", {parts->query.value, one}, {}, 1, parts->before}).front();
      }
    };
    apply("Mul", scores.multipliers);
    apply("Div", scores.divisors);
  }

  int softmax_;
  Draft& draft_;
  Facts& facts_;
  Failure& failure_;
};

}  // namespace

int fuse_core(int softmax, Draft* draft, Facts* facts, FusedGroup* group, Failure* failure) {
  return Core(softmax, draft, facts, failure).fuse(group);
}

}  // namespace headway::fusion
