// Protobuf's wire format, as far as it takes to find the weights of a model without copying them. Knows the numbers of
// the four fields on the way to them and nothing else of ONNX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace headway::importer {

using Bytes = std::span<const std::byte>;

/// A model cut in two: a file that protobuf would copy as a whole, weights twice the size of everything else.
struct SplitModel {
  /// The model without the raw data of the graph's larger initializers; for protobuf to parse.
  std::string skeleton;
  /// Of each initializer of the graph, in order: the raw data taken out, empty where none was.
  std::vector<Bytes> raw_data;
};

/// Throws kInvalidArgument when the bytes are no protobuf message on the way to the weights.
SplitModel split_model(Bytes file);

}  // namespace headway::importer
