// Everything that can be wrong with a graph or with the tensors of a run, found before anything is written. Knows no
// plan.
#pragma once

#include <span>
#include <vector>

#include "headway/graph.h"
#include "headway/operator.h"

namespace headway {

/// Throws kUnsupported listing every unknown operator with its nodes, kInvalidArgument when nothing is an output.
void check_graph(const Graph& graph, const Registry& registry);

/// The dims that a graph's inputs must have, prepared so that checking a run allocates nothing.
class InputRules {
 public:
  explicit InputRules(const Graph& graph);

  /// Throws kInvalidArgument unless types, ranks and fixed dims fit. `T` is TensorInfo or ConstTensorView.
  template <class T>
  void check_shapes(const Graph& graph, std::span<const T> inputs) const;
  /// True when equal names are equal sizes. Called after check_shapes().
  template <class T>
  bool names_hold(std::span<const T> inputs) const;

 private:
  /// One axis: `size` when it is fixed, else the input and axis where its name appears first.
  struct Axis {
    bool fixed;
    std::int64_t size;
    int input;
    int axis;
  };
  std::vector<std::vector<Axis>> axes_;  // [input][axis]
};

/// Throws kInvalidArgument for memory that is missing or not aligned to its element.
void check_input_data(const Graph& graph, std::span<const ConstTensorView> inputs);

/// Throws kInvalidArgument unless the outputs are as inferred, have memory, and overlap neither an input nor each
/// other, but for an output that is bound over the input that it extends. `extended` is by output.
void check_outputs(const Graph& graph, std::span<const TensorInfo> expected, std::span<const ExtendedInput> extended,
                   std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs);

}  // namespace headway
