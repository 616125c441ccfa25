// A model under construction: values with the types and dims that they will have, and nodes that are right by
// construction. Knows no operator.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/dice.h"

namespace headway::fuzz {

using Sizes = std::vector<std::int64_t>;

inline constexpr int kF32 = onnx::TensorProto::FLOAT;
inline constexpr int kF64 = onnx::TensorProto::DOUBLE;
inline constexpr int kF16 = onnx::TensorProto::FLOAT16;
inline constexpr int kBF16 = onnx::TensorProto::BFLOAT16;
inline constexpr int kI32 = onnx::TensorProto::INT32;
inline constexpr int kI64 = onnx::TensorProto::INT64;
inline constexpr int kBool = onnx::TensorProto::BOOL;

/// What of a value an operator and the nodes that it stands for may treat in another way, as bits.
enum Doubt : unsigned {
  kFills = 1,      ///< a mask's, beside which f32 has no room for other numbers
  kNotFinite = 2,  ///< NaN or infinite
  kCancelled = 4,  ///< what is left of a difference of nearly equal numbers: mostly rounding
};

struct Value {
  std::string name;
  int type = kF32;
  Sizes dims;
  unsigned doubts = 0;
};

std::int64_t count_of(const Sizes& dims);

class ModelBuilder {
 public:
  /// `opset` of ai.onnx; com.microsoft 1 is imported too.
  ModelBuilder(Dice* dice, std::int64_t opset);

  Dice& dice() { return *dice_; }
  std::int64_t opset() const { return opset_; }
  const std::vector<Value>& values() const { return values_; }

  /// A graph input. Some of its dims are named; equal names are equal sizes.
  Value input(int type, const Sizes& dims);
  Value floats(const Sizes& dims, const std::vector<float>& numbers);
  /// Numbers in [-1, 1].
  Value random_floats(const Sizes& dims);
  Value integers(const Sizes& dims, const std::vector<std::int64_t>& numbers);
  Value list(const std::vector<std::int64_t>& numbers) {
    return integers({static_cast<std::int64_t>(numbers.size())}, numbers);
  }
  Value scalar(float number) { return floats({}, {number}); }

  /// A node whose first output has this type and these dims; it becomes a value that later nodes may use.
  Value node(const std::string& op, const std::vector<std::string>& inputs, int type, const Sizes& dims);
  Value node(const std::string& op, const std::vector<Value>& inputs, int type, const Sizes& dims);
  /// Says of a value, and of all that is made from it from now on, that it is doubtful.
  Value doubt(const Value& value, unsigned doubts);
  /// Of the last node.
  void attribute(const std::string& name, std::int64_t number);
  void attribute(const std::string& name, float number);
  void attribute(const std::string& name, const std::string& text);
  void attribute(const std::string& name, const std::vector<std::int64_t>& numbers);
  void domain(const std::string& name) { last()->set_domain(name); }
  /// A further output of the last node.
  Value also(int type, const Sizes& dims);

  int nodes() const { return model_.graph().node_size(); }
  /// Outputs: what nobody reads, and now and then something that is read.
  onnx::ModelProto finish();

 private:
  onnx::NodeProto* last() { return model_.mutable_graph()->mutable_node(nodes() - 1); }
  onnx::AttributeProto* new_attribute(const std::string& name, onnx::AttributeProto::AttributeType type);
  std::string fresh(const char* prefix) { return prefix + std::to_string(next_++); }

  Dice* dice_;
  std::int64_t opset_;
  int next_ = 0;
  onnx::ModelProto model_;
  std::vector<Value> values_;
  std::map<std::string, unsigned> doubts_;  ///< by name
};

}  // namespace headway::fuzz
