// A graph ready to run: validated once, planned a shape at a time, run from several threads at once.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headway/graph.h"
#include "headway/operator.h"

namespace headway {

struct SessionOptions {
  /// Plans kept for distinct input shapes; the least recently used goes first. At least 1.
  int plan_cache_capacity = 16;
  /// Bytes that the session may have at one time: constants, folded values, packed weights, intermediates, outputs and
  /// workspaces. What would not fit is refused with kOutOfMemory before it is allocated. Absent: what the machine or
  /// the container has, less an eighth.
  std::optional<std::size_t> memory_limit_bytes = std::nullopt;
};

/// Runs a graph. Thread-safe: any number of threads may call run() at once, each gets a workspace of its own from a
/// pool that grows to the number of concurrent runs and no further.
class Session {
 public:
  /// Validates the graph against the registry; throws kUnsupported listing every unknown operator by name and node.
  /// The registry must outlive the session.
  Session(Graph graph, const Registry& registry, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;

  const Graph& graph() const;

  /// Types and dims of the outputs for these inputs; plans that shape if it is new.
  std::vector<TensorInfo> output_infos(std::span<const TensorInfo> inputs) const;

  /// Runs once. `inputs` and `outputs` are in the graph's order; outputs are contiguous or strided memory of the
  /// caller with exactly the inferred type and dims, and must not alias an input. Every argument is checked before
  /// anything is written. A shape seen before costs no allocation.
  void run(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs, const Threads& threads,
           Profiler* profiler = nullptr) const;
  /// The same, with outputs that it allocates.
  std::vector<Tensor> run(std::span<const ConstTensorView> inputs, const Threads& threads,
                          Profiler* profiler = nullptr) const;

  /// Per node: operator, implementation, tiles, bytes; then the arena and what liveness saved.
  std::string explain(std::span<const TensorInfo> inputs, int workers) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headway
