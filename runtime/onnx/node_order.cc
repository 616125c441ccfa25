// Kahn's algorithm with the number of the node as priority. See node_order.h.
#include "runtime/onnx/node_order.h"

#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "runtime/base/check.h"
#include "runtime/base/quoted.h"
#include "runtime/onnx/node_facts.h"

namespace headway::importer {
namespace {

/// Calls visit(name) for what the branches of a node read and do not make.
template <class Visit>
void for_each_captured(const onnx::NodeProto& node, const Visit& visit) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    const onnx::GraphProto& branch = attribute.g();
    std::unordered_set<std::string_view> made;
    for (const onnx::TensorProto& tensor : branch.initializer()) made.insert(tensor.name());
    for (const onnx::ValueInfoProto& input : branch.input()) made.insert(input.name());
    for (const onnx::NodeProto& inner : branch.node()) made.insert(inner.output().begin(), inner.output().end());
    const std::function<void(const std::string&)> look = [&](const std::string& name) {
      if (!name.empty() && made.count(name) == 0) visit(name);
    };
    for (const onnx::NodeProto& inner : branch.node()) {
      for (const std::string& input : inner.input()) look(input);
      for_each_captured(inner, look);
    }
    for (const onnx::ValueInfoProto& output : branch.output()) look(output.name());
  }
}

/// Nodes from `first` on with the edges between them.
class Dependencies {
 public:
  Dependencies(const Nodes& nodes, int first, const Scope& scope)
      : nodes_(nodes), first_(first), scope_(scope), waits_(count()), readers_(count()) {
    for (int i = first; i < nodes.size(); ++i) {
      for (const std::string& output : nodes[i].output()) {
        if (!output.empty()) makers_.try_emplace(output, i);
      }
    }
    for (int i = first; i < nodes.size(); ++i) {
      for_each_maker(i, [&](int maker, const std::string&) {
        readers_[at(maker)].push_back(i);
        ++waits_[at(i)];
      });
    }
  }

  std::vector<int> order() {
    std::vector<int> result;
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int i = first_; i < nodes_.size(); ++i) {
      if (waits_[at(i)] == 0) ready.push(i);
    }
    while (!ready.empty()) {
      const int next = ready.top();
      ready.pop();
      result.push_back(next);
      for (const int reader : readers_[at(next)]) {
        if (--waits_[at(reader)] == 0) ready.push(reader);
      }
    }
    if (result.size() != count()) refuse_cycle();
    return result;
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(nodes_.size() - first_); }
  std::size_t at(int node) const { return static_cast<std::size_t>(node - first_); }

  /// Calls visit(maker, name) for every value that node i reads and one of the nodes has yet to make.
  template <class Visit>
  void for_each_maker(int i, const Visit& visit) const {
    const auto look = [&](const std::string& name) {
      if (scope_.find(name) != nullptr) return;
      const auto maker = makers_.find(name);
      if (maker != makers_.end()) visit(maker->second, name);
    };
    for (const std::string& input : nodes_[i].input()) look(input);
    for_each_captured(nodes_[i], look);
  }

  [[noreturn]] void refuse_cycle() const {
    // Whoever still waits does so for another that does: going back long enough ends up in a cycle.
    int node = first_;
    while (waits_[at(node)] == 0) ++node;
    std::string read;
    for (std::size_t steps = 0; steps <= count(); ++steps) {
      int before = node;
      for_each_maker(node, [&](int maker, const std::string& name) {
        if (before != node || waits_[at(maker)] == 0) return;
        before = maker;
        read = name;
      });
      if (before == node) break;  // it reads what it makes
      node = before;
    }
    for_each_maker(node, [&](int maker, const std::string& name) {
      if (waits_[at(maker)] != 0) read = name;
    });
    fail(ErrorCode::kInvalidArgument, described(nodes_[node], scope_), " reads ", Quoted{read},
         ", which cannot be made before it: the graph has a cycle");
  }

  const Nodes& nodes_;
  const int first_;
  const Scope& scope_;
  std::unordered_map<std::string_view, int> makers_;
  std::vector<int> waits_;  // for so many values
  std::vector<std::vector<int>> readers_;
};

}  // namespace

bool branches_are_ready(const onnx::NodeProto& node, const Scope& scope) {
  bool ready = true;
  for_each_captured(node, [&](const std::string& name) { ready = ready && scope.find(name) != nullptr; });
  return ready;
}

std::vector<int> node_order(const Nodes& nodes, int first, const Scope& scope) {
  return Dependencies(nodes, first, scope).order();
}

}  // namespace headway::importer
