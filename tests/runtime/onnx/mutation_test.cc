// A small model with each byte changed and at each length: read or refused with an Error, never anything else. Bounded
// and the same every time; what the sanitizers say of it counts.
#include <gtest/gtest.h>

#include "headway/onnx.h"
#include "headway/register_ops.h"
#include "headway/session.h"
#include "tests/runtime/onnx/model_maker.h"

namespace headway::testing_onnx {
namespace {

/// Small inputs that the graph's fixed dims agree with; false when they are not small.
bool small_inputs(const Graph& graph, std::vector<TensorInfo>* infos) {
  for (const GraphInput& input : graph.inputs()) {
    Dims dims;
    for (const SymbolicDim& dim : input.dims) {
      const auto* size = std::get_if<std::int64_t>(&dim);
      if (size != nullptr && *size > 256) return false;
      dims.push_back(size != nullptr ? *size : 2);
    }
    infos->push_back({input.type, dims, true});
  }
  return true;
}

class Mutations : public ::testing::Test {
 protected:
  Mutations() { register_ops(&registry_); }

  /// As far as it goes without running; counts what was taken.
  void read(std::span<const std::byte> bytes) {
    try {
      OnnxModel model = parse_onnx(bytes);
      std::vector<TensorInfo> infos;
      const bool small = small_inputs(model.graph, &infos);
      const Session session(std::move(model.graph), registry_);
      if (small) session.output_infos(infos);
      ++taken_;
    } catch (const Error&) {
      ++refused_;
    }
  }

  Registry registry_;
  int taken_ = 0;
  int refused_ = 0;
};

TEST_F(Mutations, EveryLength) {
  const std::vector<std::byte> good = bytes_of(small_model());
  read(good);
  ASSERT_EQ(taken_, 1);
  for (std::size_t length = 0; length < good.size(); ++length) {
    // Memory of that size exactly, so that a read beyond it is seen.
    const std::vector<std::byte> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
    read(cut);
  }
  EXPECT_EQ(taken_ + refused_, static_cast<int>(good.size()) + 1);
  EXPECT_GT(refused_, static_cast<int>(good.size()) * 9 / 10);
}

TEST_F(Mutations, EveryByte) {
  const std::vector<std::byte> good = bytes_of(small_model());
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const unsigned change : {0x01u, 0x08u, 0x80u, 0xFFu}) {
      std::vector<std::byte> bad = good;
      bad[at] ^= static_cast<std::byte>(change);
      read(bad);
    }
  }
  EXPECT_EQ(taken_ + refused_, static_cast<int>(good.size()) * 4);
  EXPECT_GT(taken_, 100);    // names and weights may be anything
  EXPECT_GT(refused_, 100);  // lengths and types may not
}

}  // namespace
}  // namespace headway::testing_onnx
