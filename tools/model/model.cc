// See model.h.
#include "tools/model/model.h"

#include <fmt/core.h>

#include "runtime/base/printable.h"

namespace headway::tools {

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
  const ModelFacts& facts = model.facts();
  return fmt::format("opset {}, {}, {} nodes ({} to run), weights {:.1f} MB ({:.1f} MB mapped)", facts.opset,
                     facts.producer.empty() ? "no producer named" : printable(facts.producer), facts.nodes,
                     model.session().graph().nodes().size(), static_cast<double>(facts.weight_bytes) / kMega,
                     static_cast<double>(facts.mapped_bytes) / kMega);
}

std::string attention_fused(const FusionReport& fusion) {
  const auto fused = static_cast<std::size_t>(fusion.count("attention"));
  const std::string native = fusion.native.empty() ? "" : fmt::format(", native in {}", fusion.native.size());
  return fmt::format("attention fused in {} of {}{}", fused, fused + fusion.missed.size(), native);
}

}  // namespace headway::tools
