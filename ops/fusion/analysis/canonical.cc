// One walk front to back: a node sees its inputs in their final form.
#include "ops/fusion/analysis/canonical.h"

#include <algorithm>
#include <map>

#include "ops/fusion/analysis/constant_view.h"

namespace headway::fusion {
namespace {

/// An expansion beyond it is left to the session, which weighs it against the inputs.
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
/// All results together, or a multiple of the graph's constants where that is more.
constexpr std::size_t kMaxSumBytes = std::size_t{32} << 20;
constexpr std::size_t kMaxGrowth = 4;
/// Shapes and numbers, which shape arithmetic cannot do without.
constexpr std::size_t kTinyBytes = 1024;

class Canonicaliser {
 public:
  Canonicaliser(const Registry& registry, Draft* draft, Facts* facts)
      : registry_(registry), draft_(*draft), facts_(*facts) {}

  bool run() {
    const int count = draft_.num_nodes();
    const std::vector<bool> needed = draft_.needed_nodes();
    max_folded_bytes_ = std::max(kMaxSumBytes, kMaxGrowth * draft_.constant_bytes());
    for (int i = 0; i < count; ++i) {
      if (!passes_rule(i)) return false;
      if (!needed[static_cast<std::size_t>(i)] || !node(i).guards.empty()) continue;
      if (fold(i) || fold_shape(i) || drop(i)) continue;
      merge(i);
    }
    draft_.sweep();
    return true;
  }

 private:
  const Node& node(int i) const { return draft_.node(i); }

  /// In order, so that no look-up goes deep. What fails here is left to the session, which says it in the words of the
  /// sizes that a run has and only where the node is needed: so a file is refused alike whether it is fused or not.
  bool passes_rule(int i) {
    try {
      facts_.of(node(i).outputs[0]);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  /// Runs a node whose inputs are all constants.
  bool fold(int i) {
    const Node& one = node(i);
    const Operator* op = registry_.find(one.op);
    if (op == nullptr || one.inputs.empty()) return false;
    std::vector<ConstTensorView> inputs;
    std::vector<TensorInfo> infos;
    std::vector<ValueInfo> values;
    bool any = false;
    for (const ValueId input : one.inputs) {
      const Tensor* constant = draft_.constant(input);
      if (constant == nullptr && input != kNoValue) return false;
      any |= constant != nullptr;
      inputs.push_back(constant != nullptr ? unaligned_view(*constant) : ConstTensorView());
      infos.push_back({inputs.back().type, inputs.back().dims, inputs.back().present});
      values.push_back(value_info(infos.back()));
    }
    if (!any) return false;
    try {
      const auto num_outputs = static_cast<int>(one.outputs.size());
      std::vector<TensorInfo> outputs;
      std::size_t bytes = 0;
      for (const ValueInfo& info : infer_node(one, *op, {one.attributes, values, inputs, num_outputs})) {
        outputs.push_back(tensor_info(info));
        const std::size_t one_output = info.present ? tensor_bytes(outputs.back().type, outputs.back().dims) : 0;
        if (one_output > kMaxBytes) return false;
        bytes += one_output;
      }
      if (bytes > kMaxBytes) return false;
      if (bytes > kTinyBytes && folded_bytes_ + bytes > max_folded_bytes_) return false;
      const NodeContext context{one.attributes, infos, inputs, num_outputs};
      std::vector<std::shared_ptr<Tensor>> results;
      std::vector<TensorView> views;
      for (const TensorInfo& info : outputs) {
        if (!info.present) return false;
        results.push_back(std::make_shared<Tensor>(info.type, info.dims));
        views.push_back(results.back()->view());
      }
      ConstantViews aligned;
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (inputs[k]) inputs[k] = aligned.view(*draft_.constant(one.inputs[k]));
      }
      const std::unique_ptr<NodePlan> plan = op->plan(context, outputs);
      const Threads threads = Threads::serial();
      const AlignedBuffer workspace(plan->workspace_bytes(threads.workers()));
      if (bytes != 0) plan->run({threads, workspace.data(), nullptr}, inputs, views);
      folded_bytes_ += bytes;
      for (std::size_t k = 0; k < results.size(); ++k) make_constant(one.outputs[k], results[k]);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw;
      return false;  // the session says what is wrong, with the node's name
    }
    return true;
  }

  /// A short list of integers that follows from static dims.
  bool fold_shape(int i) {
    const Node& one = node(i);
    if (one.outputs.size() != 1) return false;
    const Fact& fact = facts_.of(one.outputs[0]);
    if (!fact.elements || !fact.dims || fact.rank() > 1) return false;
    if (fact.type != DataType::kI64 && fact.type != DataType::kI32) return false;
    for (const Dim& element : *fact.elements) {
      if (!element.is_number()) return false;
    }
    const auto count = static_cast<std::int64_t>(fact.elements->size());
    if (fact.rank() == 0 ? count != 1 : !(*fact.dims)[0].is(count)) return false;
    auto tensor = std::make_shared<Tensor>(*fact.type, fact.rank() == 0 ? Dims{} : Dims{count});
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t value = (*fact.elements)[static_cast<std::size_t>(k)].factor;
      if (fact.type == DataType::kI64) {
        tensor->data<std::int64_t>()[k] = value;
      } else {
        tensor->data<std::int32_t>()[k] = static_cast<std::int32_t>(value);
      }
    }
    make_constant(one.outputs[0], std::move(tensor));
    return true;
  }

  void make_constant(ValueId value, std::shared_ptr<const Tensor> tensor) {
    const ValueId constant = draft_.add_constant(draft_.value_name(value), std::move(tensor));
    draft_.replace(value, constant);
  }

  /// A node that gives what it gets.
  bool drop(int i) {
    const Node& one = node(i);
    if (one.inputs.empty() || one.inputs[0] == kNoValue) return false;
    const ValueId out = one.outputs[0];
    ValueId kept = kNoValue;
    if (one.op == "Identity") {
      kept = one.inputs[0];
    } else if (one.op == "Dropout") {
      const bool mask_used = one.outputs.size() > 1 && !draft_.readers(one.outputs[1]).empty();
      const bool trains = one.inputs.size() > 2 && one.inputs[2] != kNoValue;
      const auto& training = facts_.of(trains ? one.inputs[2] : kNoValue).elements;
      if (!mask_used && (!trains || (training && (*training)[0].is(0)))) kept = one.inputs[0];
    } else if (one.op == "Cast") {
      if (facts_.type(out) && facts_.type(out) == facts_.type(one.inputs[0])) kept = one.inputs[0];
    } else if (one.op == "Reshape" || one.op == "Expand") {
      if (facts_.same_dims(out, one.inputs[0])) kept = one.inputs[0];
    } else if (one.op == "Transpose") {
      const std::vector<std::int64_t> perm = one.attributes.integers("perm");
      if (!perm.empty() && std::is_sorted(perm.begin(), perm.end())) kept = one.inputs[0];
    } else if (one.inputs.size() == 2) {
      kept = other_of_neutral(one);
    }
    if (kept == kNoValue || draft_.is_output(out)) return false;
    draft_.replace(out, kept);
    return true;
  }

  /// x of x·1, 1·x, x/1, x + 0, 0 + x, x − 0 and x ∧ true, when the result has the dims of x.
  ValueId other_of_neutral(const Node& one) {
    for (const std::size_t k : {1, 0}) {
      const bool commutes = one.op == "Add" || one.op == "Mul" || one.op == "And";
      if (k == 0 && !commutes) break;
      const Tensor* constant = draft_.constant(one.inputs[k]);
      const ValueId other = one.inputs[1 - k];
      if (constant == nullptr || constant->count() == 0 || constant->count() > 65536) continue;
      const bool scalar = constant->dims().rank() == 0;
      if (!scalar && !facts_.same_dims(one.outputs[0], other)) continue;
      const double neutral = one.op == "Mul" || one.op == "Div" || one.op == "And" ? 1 : 0;
      const bool knows = one.op == "Mul" || one.op == "Div" || one.op == "Add" || one.op == "Sub" || one.op == "And";
      if (knows && all_are(*constant, neutral)) return other;
    }
    return kNoValue;
  }

  static bool all_are(const Tensor& tensor, double number) {
    ConstantViews aligned;
    const ConstTensorView view = aligned.view(tensor);
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      double value = 0;
      switch (tensor.type()) {
        case DataType::kF32:
          value = static_cast<double>(view.as<float>()[i]);
          break;
        case DataType::kF64:
          value = view.as<double>()[i];
          break;
        case DataType::kI64:
          value = static_cast<double>(view.as<std::int64_t>()[i]);
          break;
        case DataType::kI32:
          value = view.as<std::int32_t>()[i];
          break;
        case DataType::kBool:
          value = view.data[i] != std::byte{0} ? 1 : 0;
          break;
        default:
          return false;
      }
      if (value != number) return false;
    }
    return true;
  }

  /// An equal node that came before. The key leaves out what may differ: the name.
  void merge(int i) {
    const Node& one = node(i);
    if (one.inputs.empty()) return;
    const auto [entry, fresh] = seen_.try_emplace({one.op, one.inputs}, std::vector<int>{i});
    if (fresh) return;
    // Nodes that differ in their attributes alone are few; a file that says otherwise is not worth a quadratic search.
    constexpr std::size_t kMaxCompared = 64;
    if (entry->second.size() > kMaxCompared) return;
    for (const int other : entry->second) {
      const Node& first = node(other);
      if (first.attributes.values() != one.attributes.values() || first.outputs.size() != one.outputs.size()) continue;
      if (std::any_of(one.outputs.begin(), one.outputs.end(), [&](ValueId v) { return draft_.is_output(v); })) return;
      for (std::size_t k = 0; k < one.outputs.size(); ++k) draft_.replace(one.outputs[k], first.outputs[k]);
      return;
    }
    entry->second.push_back(i);
  }

  const Registry& registry_;
  Draft& draft_;
  Facts& facts_;
  std::size_t folded_bytes_ = 0;
  std::size_t max_folded_bytes_ = 0;
  std::map<std::pair<std::string, std::vector<ValueId>>, std::vector<int>> seen_;
};

}  // namespace

bool canonicalise(const Registry& registry, Draft* draft, Facts* facts) {
  return Canonicaliser(registry, draft, facts).run();
}

}  // namespace headway::fusion
