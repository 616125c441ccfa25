// A graph ready to run: validated once, planned a shape at a time, run from several threads at once.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headway/export.h"
#include "headway/graph.h"
#include "headway/operator.h"

namespace headway {

struct SessionOptions {
  /// Plans kept for distinct input shapes; the least recently used goes first. At least 1.
  int plan_cache_capacity = 16;
  /// Bytes that the session may have at one time: constants, folded values, packed weights, intermediates, outputs and
  /// workspaces. What would not fit is refused with kOutOfMemory, naming both numbers, before it is allocated. Memory
  /// of the caller and weights in a mapped file do not count. nullopt: what the machine or the container has, less an
  /// eighth.
  std::optional<std::size_t> memory_limit_bytes = std::nullopt;
};

/// An input of a session as its graph declares it.
struct InputInfo {
  std::string name;
  DataType type = DataType::kF32;
  std::vector<SymbolicDim> dims;
};

/// A tensor of a run by the name that the graph has for it.
struct NamedInput {
  std::string_view name;
  ConstTensorView view;
};
struct NamedOutput {
  std::string_view name;
  TensorView view;
};

/// Runs a graph. Thread-safe: any number of threads may call run() at once, each gets a workspace of its own from a
/// pool that grows to the number of concurrent runs and no further. Every function throws Error: kInvalidArgument,
/// naming the input or output and both numbers, for tensors that do not fit the graph, what an operator throws for a
/// shape that it cannot have, and kOutOfMemory naming the bytes. A session that was moved from can be assigned to and
/// destroyed, nothing else.
class HEADWAY_API Session {
 public:
  /// Validates the graph against the registry; throws kUnsupported listing every unknown operator by name and node.
  /// The registry must outlive the session.
  Session(Graph graph, const Registry& registry, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const Graph& graph() const;

  /// Names, types and dims of the inputs, in the graph's order.
  const std::vector<InputInfo>& input_infos() const;
  /// Names in the graph's order.
  const std::vector<std::string>& input_names() const;
  const std::vector<std::string>& output_names() const;
  /// Place in the graph's order. Throws kInvalidArgument listing the names that there are.
  std::size_t input_index(std::string_view name) const;
  std::size_t output_index(std::string_view name) const;

  /// Types and dims of the outputs for these inputs; plans that shape if it is new.
  std::vector<TensorInfo> output_infos(std::span<const TensorInfo> inputs) const;

  /// Runs once. `inputs` and `outputs` are in the graph's order; outputs are contiguous or strided memory of the
  /// caller with exactly the inferred type and dims, and must not alias an input. Every argument is checked before
  /// anything is written. A shape seen before costs no allocation. `host` reaches the caller's own operators as
  /// RunContext::host, null in what is computed from constants alone when a shape is planned.
  ///
  /// A cache is extended in place: the present of an attention operator may lie over its past, when the first is an
  /// output of the graph, the second an input, and no other node reads either. Both then have the same first element
  /// and strides, the innermost 1, so that past [B, H, P, D] and present [B, H, P + S, D] are slices of one buffer
  /// [B, H, M, D]: nothing of the past is copied. With GroupQueryAttention both may also be the buffer itself, P = M,
  /// since lengths say what it holds: all steps then have one shape and one plan.
  void run(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs, const Threads& threads,
           Profiler* profiler = nullptr, void* host = nullptr) const;
  /// The same, with outputs that it allocates.
  std::vector<Tensor> run(std::span<const ConstTensorView> inputs, const Threads& threads, Profiler* profiler = nullptr,
                          void* host = nullptr) const;

  /// The same by name, in any order: every input and, where outputs are given, every output exactly once. Throws
  /// kInvalidArgument for a name that is unknown, missing or given twice. Costs a look-up and an allocation more.
  void run(std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs, const Threads& threads,
           Profiler* profiler = nullptr, void* host = nullptr) const;
  /// Returns the outputs in the graph's order.
  std::vector<Tensor> run(std::span<const NamedInput> inputs, const Threads& threads, Profiler* profiler = nullptr,
                          void* host = nullptr) const;

  /// Per node: operator, implementation, tiles, bytes; then the arena and what liveness saved.
  std::string explain(std::span<const TensorInfo> inputs, int workers) const;

 private:
  struct HEADWAY_PRIVATE Impl;
  struct HEADWAY_PRIVATE Planned;
  template <class T>
  HEADWAY_PRIVATE Planned plan(std::span<const T> inputs) const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace headway
