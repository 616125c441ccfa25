// What an operator is to the graph runtime: shapes, a plan, a run; and the registry of them. Knows no operator by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headway/export.h"
#include "headway/profiler.h"
#include "headway/shape.h"
#include "headway/tensor.h"
#include "headway/threads.h"

namespace headway {

/// The last alternative of our variants, held by none of them. libstdc++ takes a variant of strings and vectors alone
/// for one that is never empty, and crashes (GCC 12) in the destructor of a copy that memory ran out for.
struct NeverHeld {
  NeverHeld() = delete;
  NeverHeld(const NeverHeld&) noexcept {}  // not the trivial one, which would change nothing
  NeverHeld& operator=(const NeverHeld&) noexcept { return *this; }
  friend bool operator==(const NeverHeld&, const NeverHeld&) { return true; }
};

/// One attribute of a node.
using Attribute =
    std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>, NeverHeld>;

/// A node's attributes by name. Typed look-ups throw kInvalidArgument naming the attribute and both types.
class HEADWAY_API Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> values) : values_(values) {}

  void set(const std::string& key, Attribute value) { values_[key] = std::move(value); }
  bool has(const std::string& key) const { return values_.count(key) != 0; }
  std::int64_t integer(const std::string& key) const;
  std::int64_t integer(const std::string& key, std::int64_t otherwise) const;
  float real(const std::string& key, float otherwise) const;
  std::string text(const std::string& key, const std::string& otherwise) const;
  std::vector<std::int64_t> integers(const std::string& key, const std::vector<std::int64_t>& otherwise = {}) const;
  const std::map<std::string, Attribute>& values() const { return values_; }

 private:
  std::map<std::string, Attribute> values_;
};

/// Type and concrete dims of a value; `present` is false for an optional input that was left out.
struct TensorInfo {
  DataType type = DataType::kF32;
  Dims dims;
  bool present = true;
};

/// The same of a value whose type and dims are known.
HEADWAY_API ValueInfo value_info(const TensorInfo& info);
/// Throws kUnsupported when a dim is no number: it is computed from data at run time.
HEADWAY_API TensorInfo tensor_info(const ValueInfo& info);

/// What an operator's rule sees of a node. The rule is asked by fusion, before any shape is known, and by a session,
/// where every present input has a type and number dims and what is not known will not be before the run.
struct HEADWAY_API InferContext {
  const Attributes& attributes;
  std::span<const ValueInfo> inputs;           ///< present or absent, in the operator's order
  std::span<const ConstTensorView> constants;  ///< same order; a view at any alignment where the value is known
  int num_outputs = 1;
  Unknowns* unknowns = nullptr;  ///< null: a session asks
  std::int64_t node = 0;         ///< tells the unknowns of one node from those of another

  bool is_final() const { return unknowns == nullptr; }
  /// A size that the rule cannot tell, number `i` of this node. Throws kUnsupported when a session asks.
  Dim unknown_size(std::int64_t i) const;
  DimList unknown_sizes(std::size_t rank) const;
};

class NodePlan;

/// What is known of a node when its plan is made.
struct NodeContext {
  const Attributes& attributes;
  std::span<const TensorInfo> inputs;          ///< present or absent, in the operator's order
  std::span<const ConstTensorView> constants;  ///< same order; a view where the value is known now, else absent
  int num_outputs = 1;
  /// Bit i: constants[i] has the same value at all shapes of the graph. Of the first 64 inputs.
  std::uint64_t fixed = 0;
  /// A plan of this node at other shapes: what it has made of fixed constants (packed weights) may be shared. Null:
  /// none.
  const NodePlan* sibling = nullptr;

  bool is_fixed(std::size_t input) const { return input < 64 && (fixed >> input & 1) != 0; }
};

/// What a plan gets besides its tensors. Everything is the caller's; a run owns nothing.
struct RunContext {
  const Threads& threads;
  std::byte* workspace = nullptr;  ///< 64-byte aligned, at least workspace_bytes(threads.workers())
  Profiler* profiler = nullptr;    ///< null: off
  void* host = nullptr;            ///< what the caller of Session::run gave: for operators of its own, ours pass it by
};

/// What a plan or a run needs of an input.
enum class InputUse : std::uint8_t {
  kElements,  ///< it is read as numbers, so it must be aligned
  kBytes,     ///< it is read as bytes, at any alignment
  kNothing,   ///< it is not read: by a run, since its values went into the plan
};

/// The input whose memory an output may have because it begins as that input: the present of a cache and its past.
struct ExtendedInput {
  int input = -1;  ///< -1: none
  /// The output may have the input's dims instead of the planned ones: what is new then lies among its elements, and a
  /// run sees whether it fits.
  bool within = false;
};

/// A node ready to run at one concrete shape. Immutable and safe to run from several threads at once, each with a
/// workspace of its own. `run` allocates nothing.
class HEADWAY_API NodePlan {
 public:
  virtual ~NodePlan() = default;
  virtual std::size_t workspace_bytes(int workers) const {
    static_cast<void>(workers);
    return 0;
  }
  /// Views have exactly the dims and types of the plan and are contiguous; a session sees to that. Alone what
  /// extended_input() tells of may be otherwise.
  virtual void run(const RunContext& context, std::span<const ConstTensorView> inputs,
                   std::span<const TensorView> outputs) const = 0;
  /// Asked of inputs that are constants: weights that a plan has packed need not stay in memory beside it.
  virtual InputUse use(std::size_t input) const {
    static_cast<void>(input);
    return InputUse::kElements;
  }
  /// Where a caller binds such an input and output to one buffer, run() gets both as they were bound: of the same first
  /// element and strides, the innermost 1, differing in the length of one axis at most. It then writes what is new and
  /// leaves the rest as it is.
  virtual ExtendedInput extended_input(std::size_t output) const {
    static_cast<void>(output);
    return {};
  }
  /// One line or more: which implementation, its tiles and bytes, why not a better one.
  virtual std::string explain() const { return {}; }
};

/// An operator: stateless, shared by all its nodes.
class HEADWAY_API Operator {
 public:
  virtual ~Operator() = default;
  virtual std::string_view name() const = 0;
  /// The one rule of the operator: checks arity, attributes, types and dims as far as they are known, and says what is
  /// known of each output, elements of shape arithmetic included (an output whose elements are all numbers needs no
  /// run). Throws kInvalidArgument naming the input and both numbers; a size that may fit is no error.
  virtual std::vector<ValueInfo> infer(const InferContext& node) const = 0;
  /// The input whose elements, in row-major order, are those of the only output under the dims that infer() gave
  /// (Reshape, Squeeze, Identity): the node becomes a view and is neither planned nor run. -1, the default: none.
  virtual int aliased_input(const NodeContext& node, std::span<const TensorInfo> outputs) const {
    static_cast<void>(node);
    static_cast<void>(outputs);
    return -1;
  }
  /// What plan() needs of an input that is a constant. Anything but kElements spares a large table in a file its
  /// aligned copy.
  virtual InputUse planning_use(std::size_t input) const {
    static_cast<void>(input);
    return InputUse::kElements;
  }
  /// A plan for these shapes. `outputs` is what infer() gave.
  virtual std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo> outputs) const = 0;
};

/// Operators by name. Filled once, then read-only and safe to share.
class HEADWAY_API Registry {
 public:
  /// Throws kInvalidArgument when the name is taken.
  void add(std::unique_ptr<Operator> op);
  /// Null when there is none.
  const Operator* find(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, std::unique_ptr<Operator>, std::less<>> operators_;
};

}  // namespace headway
