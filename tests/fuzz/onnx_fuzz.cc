// libFuzzer on the importer: any bytes are read as a model, folded, and planned at small shapes, or refused with an
// Error.
#include <cstddef>
#include <cstdint>
#include <span>

#include "headway/onnx.h"
#include "headway/register_ops.h"
#include "headway/session.h"

namespace {

const headway::Registry& registry() {
  static const headway::Registry* const all = [] {
    auto* made = new headway::Registry;
    headway::register_ops(made);
    return made;
  }();
  return *all;
}

/// Sizes small enough that a plan costs little; a graph that asks for more is not planned.
bool small_inputs(const headway::Graph& graph, std::vector<headway::TensorInfo>* infos) {
  for (const headway::GraphInput& input : graph.inputs()) {
    headway::Dims dims;
    for (const headway::SymbolicDim& dim : input.dims) {
      const auto* size = std::get_if<std::int64_t>(&dim);
      if (size != nullptr && *size > 64) return false;
      dims.push_back(size != nullptr ? *size : 2);
    }
    infos->push_back({input.type, dims, true});
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    headway::OnnxModel model = headway::parse_onnx(std::as_bytes(std::span(data, size)));
    std::vector<headway::TensorInfo> infos;
    const bool small = small_inputs(model.graph, &infos);
    const headway::Session session(std::move(model.graph), registry());
    if (small) session.output_infos(infos);
  } catch (const headway::Error&) {
    // What a refusal looks like.
  }
  return 0;
}
