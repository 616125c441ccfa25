// What the operators' rules have in common: looks at inputs, attributes and lists of integers of which not everything
// need be known. What may fit passes; what cannot is refused in the words that a run would be refused in. Knows no
// operator.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "headway/operator.h"
#include "runtime/base/check.h"

namespace headway {

using Inferred = std::vector<ValueInfo>;

/// `Node` is InferContext or NodeContext.
template <class Node>
bool has_input(const Node& node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i].present;
}

/// Throws kInvalidArgument unless the node has between `least` and `most` inputs, the first `least` of them present.
void check_inputs(const char* op, const InferContext& node, std::size_t least, std::size_t most);
/// Throws kInvalidArgument when the node has more outputs.
void check_outputs(const char* op, const InferContext& node, int most);

/// Throws kInvalidArgument unless the type of the input may be one of the list.
void check_type(const char* op, const InferContext& node, std::size_t input, std::initializer_list<DataType> allowed);
/// Throws kInvalidArgument unless both inputs may have the same type.
void check_same_type(const char* op, const InferContext& node, std::size_t a, std::size_t b);
/// Throws kInvalidArgument unless the input is f32.
void check_f32(const char* op, const InferContext& node, std::size_t input);
/// Of f32 or bf16, and as input 0.
void check_f32_or_bf16(const char* op, const InferContext& node, std::size_t input);
/// Throws kInvalidArgument unless an input that is given may hold one element; `what` names it in messages.
void check_one_element(const char* op, const InferContext& node, std::size_t input, const std::string& what);

inline constexpr std::initializer_list<DataType> kFloatTypes = {DataType::kF32, DataType::kF64, DataType::kF16,
                                                                DataType::kBF16};
inline constexpr std::initializer_list<DataType> kNumericTypes = {DataType::kF32,  DataType::kF64, DataType::kF16,
                                                                  DataType::kBF16, DataType::kI8,  DataType::kU8,
                                                                  DataType::kI32,  DataType::kI64};

/// −1 counts from the back. Throws kInvalidArgument naming both numbers.
int normalised_axis(const char* op, std::int64_t axis, std::size_t rank);
/// The same of several, no axis twice.
std::vector<int> normalised_axes(const char* op, const std::vector<std::int64_t>& axes, std::size_t rank);

/// Type and dims of an input, as an output that has the same.
inline ValueInfo like(const ValueInfo& input) { return {input.type, input.dims, {}, true}; }

/// The dims of two operands broadcast to each other, right-aligned; nullopt where a rank is not known. Throws
/// kInvalidArgument naming both.
std::optional<DimList> broadcast(const char* op, const InferContext& node, const std::optional<DimList>& a,
                                 const std::optional<DimList>& b);
/// True unless broadcasting `from` to `to` certainly fails or changes `to`.
bool may_broadcast_to(const DimList& from, const DimList& to);
/// What an axis is that two operands have, where one of them may be 1.
Dim broadcast_dim(const InferContext& node, const Dim& a, const Dim& b);

/// The elements of an input that decides a shape: i64 or i32, rank 0 or 1. `what` names them in messages. nullopt where
/// they are not known yet; throws kUnsupported where a session asks, since they are computed from data at run time.
std::optional<DimList> elements_of(const char* op, const InferContext& node, std::size_t input, const char* what);
/// The same where all are numbers.
std::optional<std::vector<std::int64_t>> known_integers(const char* op, const InferContext& node, std::size_t input,
                                                        const char* what);
/// The same from the input where it is given, else from the attribute, else empty. `given` tells which it was.
std::optional<std::vector<std::int64_t>> integers_of(const char* op, const InferContext& node, std::size_t input,
                                                     const char* what, bool* given = nullptr);

/// A node that is planned as its rule sees it, for operators that read sizes in one place.
class PlannedInputs {
 public:
  explicit PlannedInputs(const NodeContext& node) : node_(node) {
    for (const TensorInfo& input : node.inputs) inputs_.push_back(value_info(input));
  }
  InferContext context() const { return {node_.attributes, inputs_, node_.constants, node_.num_outputs}; }

 private:
  const NodeContext& node_;
  std::vector<ValueInfo> inputs_;
};

/// A number, or 1 in place of a size that is not known: for checks of what does not depend on it.
inline std::int64_t number_or_one(const Dim& dim) { return dim.is_number() ? dim.factor : 1; }

/// a + b, by the name that a concatenation of such lengths has.
Dim sum_of(const InferContext& node, const Dim& a, const Dim& b);

/// True where the expression cannot be negative.
bool is_size(const InferContext& node, const Dim& dim);

}  // namespace headway
