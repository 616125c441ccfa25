// Caches that attention operators extend where they lie: the numbers of a run with tensors apart, nothing written
// beside what is new, and steps over a buffer of one shape.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/ops/graph/run_node.h"
#include "tests/ops/matmul/allocation_counter.h"

namespace headway::testing {
namespace {

constexpr std::int64_t kCacheBatch = 2, kCacheHeads = 4, kCacheDim = 8, kNewTokens = 3, kPastTokens = 5, kCapacity = 11;

/// An operator with past and present, and where its past stands.
struct CacheOperator {
  const char* name;
  Attributes attributes;
  std::int64_t kv_heads;
  std::size_t past_key;
  bool by_lengths = false;
};

CacheOperator group_query_attention() {
  return {"com.microsoft.GroupQueryAttention",
          {{"num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}},
          2,
          3,
          true};
}

std::vector<CacheOperator> cache_operators() {
  const auto four = std::int64_t{4}, two = std::int64_t{2}, one = std::int64_t{1};
  return {group_query_attention(),
          {"onnx.Attention", {{"q_num_heads", four}, {"kv_num_heads", two}, {"is_causal", one}}, 2, 4},
          {"com.microsoft.MultiHeadAttention", {{"num_heads", four}, {"unidirectional", one}}, 4, 6}};
}

Tensor in_type(const Tensor& tensor, DataType type) { return numbers(type, tensor.dims(), as_doubles(tensor)); }

/// Bytes of a contiguous copy.
std::vector<std::byte> bytes_of(const ConstTensorView& view) {
  std::vector<std::byte> bytes(tensor_bytes(view.type, view.dims));
  copy_elements(view, TensorView(bytes.data(), view.type, view.dims));
  return bytes;
}

/// A graph of one node whose inputs and outputs are the graph's, and the tensors of one step.
struct OneNode {
  OneNode(const CacheOperator& op, DataType type, std::int64_t tokens, std::int64_t past_rows, Random* random) {
    const std::int64_t width = op.kv_heads * kCacheDim;
    add("query", in_type(random_tensor({kCacheBatch, tokens, kCacheHeads * kCacheDim}, random), type));
    add("key", in_type(random_tensor({kCacheBatch, tokens, width}, random), type));
    add("value", in_type(random_tensor({kCacheBatch, tokens, width}, random), type));
    while (places.size() < op.past_key) places.push_back(kNoValue);
    past = tensors.size();
    add("past_key", in_type(random_tensor({kCacheBatch, op.kv_heads, past_rows, kCacheDim}, random), type));
    add("past_value", in_type(random_tensor({kCacheBatch, op.kv_heads, past_rows, kCacheDim}, random), type));
    if (op.by_lengths) {
      const auto total = static_cast<std::int32_t>(past_rows + tokens);
      add("seqlens_k", tensor_of<std::int32_t>({kCacheBatch}, {total - 1, total - 2}));
      add("total_sequence_length", tensor_of<std::int32_t>({1}, {total}));
    }
    const std::vector<ValueId> values = graph.add_node(op.name, "node", places, op.attributes, 3);
    const char* const names[] = {"out", "present_key", "present_value"};
    for (std::size_t i = 0; i < 3; ++i) graph.add_output(names[i], values[i]);
  }
  void add(const char* name, Tensor tensor) {
    std::vector<SymbolicDim> dims = symbolic(tensor.dims());
    if (tensor.dims().rank() == 4) dims[2] = name;
    places.push_back(graph.add_input(name, tensor.type(), dims));
    tensors.push_back(std::move(tensor));
  }
  std::vector<ConstTensorView> views() const {
    std::vector<ConstTensorView> views;
    for (const Tensor& tensor : tensors) views.push_back(tensor.view());
    return views;
  }

  Graph graph;
  std::vector<ValueId> places;
  std::vector<Tensor> tensors;
  std::size_t past = 0;
};

TEST(InPlaceCache, EveryOperatorExtendsItAsApart) {
  Random random(1);
  for (const CacheOperator& op : cache_operators()) {
    for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16}) {
      SCOPED_TRACE(std::string(op.name) + " in " + type_name(type));
      OneNode node(op, type, kNewTokens, kPastTokens, &random);
      const Session session(Graph(node.graph), all_ops());
      std::vector<ConstTensorView> inputs = node.views();
      const std::vector<Tensor> apart = session.run(inputs, Threads::serial());

      Tensor out(type, apart[0].dims());
      std::vector<Tensor> buffers;
      std::vector<TensorView> outputs = {out.view()};
      for (std::size_t i = 0; i < 2; ++i) {
        Tensor& buffer = buffers.emplace_back(type, Dims{kCacheBatch, op.kv_heads, kCapacity, kCacheDim});
        std::memset(buffer.view().data, 0x55, tensor_bytes(type, buffer.dims()));
        const TensorView past = buffer.view().sliced(2, 0, kPastTokens);
        copy_elements(inputs[node.past + i], past);
        inputs[node.past + i] = past;
        outputs.push_back(buffer.view().sliced(2, 0, kPastTokens + kNewTokens));
      }
      for (const int workers : {1, 2}) {
        session.run(inputs, outputs, Threads::openmp(workers));
        for (std::size_t i = 0; i < 3; ++i) {
          EXPECT_EQ(bytes_of(outputs[i]), bytes_of(apart[i].view())) << "output " << i << ", " << workers << " workers";
        }
        for (Tensor& buffer : buffers) {
          for (const std::byte byte : bytes_of(buffer.view().sliced(2, kPastTokens + kNewTokens, kCapacity))) {
            ASSERT_EQ(byte, std::byte{0x55}) << "behind the present";
          }
        }
      }
    }
  }
}

/// A cache that is both past and present, over steps of one token.
class WholeBuffer : public ::testing::Test {
 protected:
  WholeBuffer()
      : node_(group_query_attention(), DataType::kF32, 1, kCapacity, &random_),
        session_(Graph(node_.graph), all_ops()),
        inputs_(node_.views()),
        outputs_{out_.view(), node_.tensors[node_.past].view(), node_.tensors[node_.past + 1].view()} {}

  /// The second sequence is one token shorter.
  void step(std::int32_t total) {
    auto* const lengths = node_.tensors[node_.past + 2].data<std::int32_t>();
    lengths[0] = total - 1;
    lengths[1] = total - 2;
    *node_.tensors[node_.past + 3].data<std::int32_t>() = total;
    session_.run(inputs_, outputs_, Threads::serial());
  }

  Random random_{2};
  OneNode node_;
  Session session_;
  Tensor out_{DataType::kF32, {kCacheBatch, 1, kCacheHeads* kCacheDim}};
  std::vector<ConstTensorView> inputs_;
  std::vector<TensorView> outputs_;
};

TEST_F(WholeBuffer, StepsAreThoseOfAGrowingPast) {
  for (std::int32_t total = 4; total <= kCapacity; ++total) {
    for (std::size_t i = 0; i < 3; ++i) {
      copy_elements(random_tensor(node_.tensors[i].dims(), &random_).view(), node_.tensors[i].view());
    }
    std::vector<Tensor> pasts;
    std::vector<ConstTensorView> apart = inputs_;
    for (const std::size_t i : {node_.past, node_.past + 1}) {
      const ConstTensorView past = inputs_[i].sliced(2, 0, total - 1);
      copy_elements(past, pasts.emplace_back(DataType::kF32, past.dims).view());
      apart[i] = std::as_const(pasts.back()).view();
    }
    step(total);
    const std::vector<Tensor> expected = session_.run(apart, Threads::serial());
    EXPECT_EQ(bytes_of(out_.view()), bytes_of(expected[0].view())) << "a total of " << total;
    for (std::size_t i = 1; i < 3; ++i) {
      // Behind the shorter sequence the buffer has what was there.
      const auto written = [&](const ConstTensorView& present, std::int64_t b) {
        return bytes_of(present.sliced(0, b, b + 1).sliced(2, 0, total - b));
      };
      for (const std::int64_t b : {0, 1}) {
        EXPECT_EQ(written(outputs_[i], b), written(expected[i].view(), b)) << "output " << i << ", sequence " << b;
      }
    }
  }
}

TEST_F(WholeBuffer, StepsAllocateNothing) {
  step(4);
  const AllocationCounter counter;
  for (std::int32_t total = 5; total <= kCapacity; ++total) step(total);
  EXPECT_EQ(counter.count(), 0);
}

TEST_F(WholeBuffer, AFullBufferIsRefused) {
  const std::vector<std::byte> before = bytes_of(outputs_[1]);
  expect_contains(error_of([&] { step(kCapacity + 1); }), "total_sequence_length is 12, expected 1 to 11");
  EXPECT_EQ(bytes_of(outputs_[1]), before);
}

TEST_F(WholeBuffer, KeysAloneMayBeInPlace) {
  // Values have a present of their own, with room for one more.
  Tensor value(DataType::kF32, {kCacheBatch, 2, kCapacity + 1, kCacheDim});
  outputs_[2] = value.view();
  const ConstTensorView past = inputs_[node_.past + 1];
  const std::vector<std::byte> before = bytes_of(past);
  step(kCapacity);
  EXPECT_EQ(bytes_of(past), before);
  const auto rows = [](const ConstTensorView& view, std::int64_t end) { return bytes_of(view.sliced(2, 0, end)); };
  EXPECT_EQ(rows(value.view(), kCapacity - 2), rows(past, kCapacity - 2));
  EXPECT_NE(rows(value.view(), kCapacity), before) << "what is new";
}

}  // namespace
}  // namespace headway::testing
