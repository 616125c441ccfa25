// Import, refusal, fusion and session in their order. Knows no operator by name.
#include "headway/model.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "headway/register_ops.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"
#include "runtime/base/printable.h"

namespace headway {
namespace {

/// The pass takes graphs of known operators, so they are looked for before it.
void refuse_unknown(const Graph& graph, const Registry& registry) {
  struct Uses {
    std::string first;
    int count = 0;
  };
  std::map<std::string, Uses> unknown;
  for (const Node& node : graph.nodes()) {
    if (registry.find(node.op) != nullptr) continue;
    Uses& uses = unknown[node.op];
    if (uses.count++ == 0) uses.first = node.name;
  }
  if (unknown.empty()) return;
  constexpr std::size_t kMaxNodeChars = 24;  // so that three operators fit a message
  std::vector<std::string> list;
  for (const auto& [op, uses] : unknown) {
    const std::string nodes = uses.count == 1 ? "node " : std::to_string(uses.count) + " nodes, the first ";
    list.push_back(printable(op) + " (" + nodes + '\'' + printable(uses.first, kMaxNodeChars) + "')");
  }
  fail(ErrorCode::kUnsupported, unknown.size(), unknown.size() == 1 ? " operator is" : " operators are",
       " not supported: ", listed(list));
}

}  // namespace

struct Model::Impl {
  ModelFacts facts;
  FusionReport fusion;
  Registry registry;  // which the session refers to
  std::optional<Session> session;
};

Model::Model(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

const Session& Model::session() const { return *impl_->session; }
const FusionReport& Model::fusion() const { return impl_->fusion; }
const ModelFacts& Model::facts() const { return impl_->facts; }

Model load_model(const std::string& path, const ModelOptions& options) try {
  OnnxModel onnx = read_onnx(path);
  try {
    return make_model(std::move(onnx), options);
  } catch (const Error& error) {
    fail(error.code(), printable(path), ": ", error.what());
  }
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

Model make_model(OnnxModel onnx, const ModelOptions& options) try {
  auto model = std::make_unique<Model::Impl>();
  register_ops(&model->registry);
  if (options.extend_registry) options.extend_registry(model->registry);
  model->facts = {onnx.opset, onnx.producer, onnx.graph.nodes().size(), onnx.weight_bytes, onnx.mapped_bytes};
  refuse_unknown(onnx.graph, model->registry);
  if (options.fused) onnx.graph = fuse(onnx.graph, model->registry, &model->fusion);
  model->session.emplace(std::move(onnx.graph), model->registry, options.session);
  return Model(std::move(model));
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace headway
