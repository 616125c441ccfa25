// See model.h.
#include "tools/model/model.h"

#include <fmt/core.h>

#include <map>

#include "headway/register_ops.h"
#include "runtime/base/check.h"

namespace headway::tools {
namespace {

// The pass takes graphs of known operators, so they are looked for before it.
void refuse_unknown(const Graph& graph, const Registry& registry) {
  std::map<std::string, std::string> unknown;
  for (const Node& node : graph.nodes()) {
    if (registry.find(node.op) != nullptr) continue;
    std::string& nodes = unknown[node.op];
    nodes += (nodes.empty() ? "'" : ", '") + node.name + '\'';
  }
  if (unknown.empty()) return;
  std::string list;
  for (const auto& [op, nodes] : unknown) list += fmt::format("{}{} (node {})", list.empty() ? "" : ", ", op, nodes);
  fail(ErrorCode::kUnsupported, unknown.size(), unknown.size() == 1 ? " operator is" : " operators are",
       " not supported: ", list);
}

}  // namespace

Model load_model(const std::string& path, bool fused, std::optional<std::size_t> memory_limit_bytes) {
  return prepare_model(read_onnx(path), path, fused, memory_limit_bytes);
}

Model prepare_model(OnnxModel onnx, const std::string& path, bool fused,
                    std::optional<std::size_t> memory_limit_bytes) {
  Model model;
  model.registry = std::make_unique<Registry>();
  register_ops(model.registry.get());
  model.facts = {onnx.opset, onnx.producer, onnx.graph.nodes().size(), onnx.weight_bytes, onnx.mapped_bytes};
  try {
    refuse_unknown(onnx.graph, *model.registry);
    if (fused) onnx.graph = fuse(onnx.graph, *model.registry, &model.fusion);
    const SessionOptions options{.memory_limit_bytes = memory_limit_bytes};
    model.session = std::make_unique<Session>(std::move(onnx.graph), *model.registry, options);
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
  return model;
}

std::string text(const std::vector<SymbolicDim>& dims) {
  std::string out;
  for (const SymbolicDim& dim : dims) {
    const auto* size = std::get_if<std::int64_t>(&dim);
    out += (out.empty() ? "" : ", ") + (size ? std::to_string(*size) : std::get<std::string>(dim));
  }
  return '[' + out + ']';
}

std::string text(const Model& model) {
  constexpr double kMega = 1e6;
  const ModelFacts& facts = model.facts;
  return fmt::format("opset {}, {}, {} nodes ({} to run), weights {:.1f} MB ({:.1f} MB mapped)", facts.opset,
                     facts.producer.empty() ? "no producer named" : facts.producer, facts.nodes,
                     model.session->graph().nodes().size(), static_cast<double>(facts.weight_bytes) / kMega,
                     static_cast<double>(facts.mapped_bytes) / kMega);
}

std::string attention_fused(const FusionReport& fusion) {
  const auto fused = static_cast<std::size_t>(fusion.count("attention"));
  return fmt::format("attention fused in {} of {}", fused, fused + fusion.missed.size());
}

}  // namespace headway::tools
