// A model file ready to run, in one call: imported, refused if it holds an operator that is not known, fused, in a
// session. Needs the library headway_onnx, as onnx.h does. Knows no inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "headway/export.h"
#include "headway/fusion.h"
#include "headway/onnx.h"
#include "headway/operator.h"
#include "headway/session.h"

namespace headway {

struct ModelOptions {
  /// False: the nodes run as the file has them.
  bool fused = true;
  /// Plan cache and limit of memory.
  SessionOptions session = {};
  /// Called once with the registry that has this library's operators: adds those of the engine. Empty: none.
  std::function<void(Registry&)> extend_registry = {};
};

/// What a file is, before anything is done to it.
struct ModelFacts {
  std::int64_t opset = 0;  ///< of ai.onnx
  std::string producer;    ///< "pytorch 2.4.0"; empty when the file names none
  std::size_t nodes = 0;
  std::size_t weight_bytes = 0;  ///< of all constants
  std::size_t mapped_bytes = 0;  ///< of those that are views of the mapped file
};

/// A session with all that it refers to. Immutable: what is safe for a Session from several threads is safe here.
/// Move-only; one that was moved from can be assigned to and destroyed, nothing else.
class HEADWAY_API Model {
 public:
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /// Inputs and outputs by name, plans, runs: see session.h. Lives as long as the model.
  const Session& session() const;
  const FusionReport& fusion() const;  ///< empty when not fused
  const ModelFacts& facts() const;

 private:
  friend Model make_model(OnnxModel onnx, const ModelOptions& options);
  struct Impl;
  explicit Model(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

/// Reads a file.onnx and makes it ready. Throws, naming the file in one line: what read_onnx throws; kUnsupported
/// listing every operator that is not known, with its nodes, before anything is fused; what the operators throw for
/// nodes that cannot be right. Cost: the file's graph is read and its constants are mapped; weights are packed when a
/// shape is planned.
HEADWAY_API Model load_model(const std::string& path, const ModelOptions& options = {});

/// The same for a model already read, by read_onnx or from memory by parse_onnx.
HEADWAY_API Model make_model(OnnxModel onnx, const ModelOptions& options = {});

}  // namespace headway
