// From an ONNX file to a graph. Needs the library headway_onnx, which is apart because it alone needs protobuf. Knows
// no operator: a node becomes a node of the same name, and a session says which names it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "headway/export.h"
#include "headway/graph.h"
#include "headway/tensor.h"

namespace headway {

inline constexpr std::int64_t kOldestOpset = 13;
inline constexpr std::int64_t kNewestOpset = 25;

struct OnnxModel {
  Graph graph;
  std::int64_t opset = 0;  ///< of ai.onnx
  std::int64_t ir_version = 0;
  std::string producer;
  std::size_t weight_bytes = 0;  ///< of all constants
  std::size_t mapped_bytes = 0;  ///< of those that are views of the mapped file
};

/// What a model may grow to when functions are inlined where they are called and branches where they stand. Counted
/// before anything is built; the defaults are far above what exporters write and far below what a machine has.
struct ImportLimits {
  std::size_t nodes = std::size_t{1} << 20;             ///< of the file, each as often as it is inlined
  std::size_t steps = std::size_t{1} << 24;             ///< those nodes with their inputs, outputs and attributes
  std::size_t name_bytes = std::size_t{32} << 20;       ///< of names made for what is inlined
  std::size_t attribute_bytes = std::size_t{32} << 20;  ///< of lists and texts copied for what is inlined
  int depth = 64;                                       ///< of branches and calls in one another
};

/// Reads a model, opsets 13 to 25. Large weights stay in the mapped file, or that of their external data; a session
/// makes aligned copies of those that its nodes read as numbers, and of no others. Files of external data must lie in
/// the model's folder, or in the folder that links of the model's own path lead to, as in the cache of a hub. A file
/// may not change while the graph lives.
///
///   node      op = op_type for ai.onnx, except "onnx.Attention", since "Attention" is this library's own; else
///             "<domain>.<op_type>". Inputs and outputs in ONNX's order, attributes by their ONNX names.
///   Constant  becomes a constant; the value of ConstantOfShape becomes its input 1.
///   If        a branch is inlined where the condition is a constant. Elsewhere both are, under guards, and a node "If"
///             (condition, then, else) picks each result.
///   function  local functions are inlined.
///   dims      without a size or a name get a name of their own.
///   order     nodes may stand in any order; those that stand before what they read are moved behind it, and no others.
///
/// Throws kIo when a file cannot be read, kUnsupported for what is right but not done here (sequences, opsets, element
/// types, more than a limit), kInvalidArgument, naming the node or tensor and both numbers, for anything that cannot be
/// right: truncated, cyclic, negative dims, dims whose product overflows, data of another size than the dims ask for.
HEADWAY_API OnnxModel read_onnx(const std::string& path, const ImportLimits& limits = {});

/// The same from memory, of which nothing is kept. External data is refused.
HEADWAY_API OnnxModel parse_onnx(std::span<const std::byte> bytes, const ImportLimits& limits = {});

struct OnnxTensor {
  std::string name;
  Tensor tensor;
};

/// A file that holds one serialised tensor, as the data sets of the ONNX backend suite do. Throws as read_onnx does.
HEADWAY_API OnnxTensor read_onnx_tensor(const std::string& path);

}  // namespace headway
