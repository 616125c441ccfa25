// Finding what exporters took apart: attention, projections, norms and activations in a graph of small operators, put
// back together as the operators of this library; and the report of what was found and what was not. Knows no shapes of
// a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headway/export.h"
#include "headway/graph.h"
#include "headway/operator.h"

namespace headway {

/// One group of nodes that became one node.
struct FusedGroup {
  std::string node;             ///< the node it was recognised by: the Softmax, the Attention, the last of a norm
  std::string kind;             ///< the operator that stands there now: "Attention", "MultiHeadAttention", …
  std::int64_t heads = 0;       ///< 0 where the file leaves it to the run, and where there are none
  std::int64_t kv_heads = 0;    ///< the same
  std::int64_t head_dim = 0;    ///< the same
  std::string mask;             ///< "none", "bool", "float", "causal", …; empty where there is no attention
  bool weights_output = false;  ///< the probabilities are an output, because somebody else reads them
};

/// A Softmax or an Attention that stayed as it was.
struct MissedAttention {
  std::string node;  ///< its name
  std::string op;    ///< "Softmax" or "onnx.Attention"
  std::string edge;  ///< one line: the first edge that failed, with the name of the node it leads to
};

/// An attention operator that the file has as one node and that runs as it is: on the same engines, in its own words.
struct NativeAttention {
  std::string node;  ///< its name
  std::string op;    ///< "onnx.Attention", "com.microsoft.MultiHeadAttention", …
};

struct HEADWAY_API FusionReport {
  std::vector<FusedGroup> fused;
  std::vector<NativeAttention> native;
  std::vector<MissedAttention> missed;

  /// How many groups of a kind there are; "attention": Attention and MultiHeadAttention together.
  std::int64_t count(const std::string& kind) const;
  /// One line per fused attention, per kind of the others with its count, per kind of native attention with its count,
  /// and per miss.
  std::string text() const;
};

/// The graph with everything recognised replaced; same inputs, same outputs, the same numbers within rounding, rows
/// that see no key included. What is not recognised is left alone. `report` may be null. Constants are shared with
/// `graph`, which may be dropped afterwards. Throws what the operators throw for a graph that is wrong.
HEADWAY_API Graph fuse(const Graph& graph, const Registry& registry, FusionReport* report = nullptr);

}  // namespace headway
