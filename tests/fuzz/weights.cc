// See weights.h.
#include "tests/fuzz/weights.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tests/fuzz/dice.h"
#include "tests/fuzz/model_builder.h"

namespace headway::fuzz {

bool holds_huge_weights(const std::string& bytes) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return false;
  const auto is_huge = [](const onnx::TensorProto& tensor) {
    if (tensor.data_type() != kF32) return false;
    for (std::size_t at = 0; at + sizeof(float) <= tensor.raw_data().size(); at += sizeof(float)) {
      float number = 0;
      std::memcpy(&number, tensor.raw_data().data() + at, sizeof(float));
      const bool fills = number == std::numeric_limits<float>::lowest();
      if (std::isfinite(number) && std::abs(number) > 1e15f && !fills) return true;
    }
    return false;
  };
  const auto& weights = model.graph().initializer();
  return std::any_of(weights.begin(), weights.end(), is_huge);
}

std::string nudged(const std::string& bytes, std::uint64_t nudge) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return bytes;
  Dice dice(nudge);
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.data_type() != kF32 || !tensor.has_raw_data()) continue;
    std::string raw = tensor.raw_data();
    for (std::size_t at = 0; at + sizeof(float) <= raw.size(); at += sizeof(float)) {
      float number = 0;
      std::memcpy(&number, raw.data() + at, sizeof(float));
      const float moved = number * (1 + dice.unit() * 0x1p-22f);
      if (std::isfinite(moved)) std::memcpy(raw.data() + at, &moved, sizeof(float));
    }
    tensor.set_raw_data(std::move(raw));
  }
  return model.SerializeAsString();
}

}  // namespace headway::fuzz
