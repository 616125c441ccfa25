// A model file made ready to run: imported, fused, in a session. Knows no inputs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headway/fusion.h"
#include "headway/onnx.h"
#include "headway/session.h"

namespace headway::tools {

/// What the file is, before anything is done to it.
struct ModelFacts {
  std::int64_t opset = 0;
  std::string producer;
  std::size_t nodes = 0;
  std::size_t weight_bytes = 0;
  std::size_t mapped_bytes = 0;
};

struct Model {
  ModelFacts facts;
  FusionReport fusion;                 ///< empty when not fused
  std::unique_ptr<Registry> registry;  ///< which the session refers to
  std::unique_ptr<Session> session;
};

/// Throws kUnsupported listing every operator that is not known, with its nodes, before anything else is looked at.
Model load_model(const std::string& path, bool fused, std::optional<std::size_t> memory_limit_bytes = std::nullopt);
/// The same for a model already read; `path` is for messages.
Model prepare_model(OnnxModel onnx, const std::string& path, bool fused,
                    std::optional<std::size_t> memory_limit_bytes = std::nullopt);

/// "[2, sequence]"
std::string text(const std::vector<SymbolicDim>& dims);
/// "opset 17, pytorch 2.13.0, 232 nodes (118 after fusion), weights 0.4 MB (0.1 MB mapped)"
std::string text(const Model& model);
/// "attention fused in 2 of 2"
std::string attention_fused(const FusionReport& fusion);

}  // namespace headway::tools
