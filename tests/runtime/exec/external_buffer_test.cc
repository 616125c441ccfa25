// Constants in memory of others: aligned copies are made for those who read numbers, live no longer than they must, and
// are not made for those who read bytes.
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "headway/session.h"
#include "runtime/base/check.h"
#include "tests/runtime/exec/test_operators.h"

namespace headway::testing {
namespace {

/// Four floats, one byte off, that count who holds an aligned copy.
class OddBytes : public ExternalBuffer {
 public:
  OddBytes() {
    const std::array<float, 4> values = {1, 2, 3, 4};
    std::memcpy(memory_.data() + 1, values.data(), sizeof values);
  }
  const std::byte* bytes() const override { return memory_.data() + 1; }
  std::shared_ptr<const std::byte> aligned() const override {
    ++made;
    ++held;
    const auto copy = std::make_shared<AlignedBuffer>(16);
    std::memcpy(copy->data(), bytes(), 16);
    return {copy->data(), [this, copy](const std::byte*) { --held; }};
  }
  const std::byte* aligned_view() const override {
    if (!pinned_) pinned_ = aligned();
    return pinned_.get();
  }
  void advise_unneeded() const override { ++forgotten; }

  mutable int made = 0;
  mutable int held = 0;
  mutable int forgotten = 0;

 private:
  alignas(64) std::array<std::byte, 17> memory_;
  mutable std::shared_ptr<const std::byte> pinned_;
};

/// y = x + c where c is known: adds at run time what `need` says it still reads, else what it read when it was planned,
/// which it does only when it needs nothing later.
class AddKnown : public Operator {
 public:
  AddKnown(std::string name, InputUse need) : name_(std::move(name)), need_(need) {}
  std::string_view name() const override { return name_; }
  std::vector<ValueInfo> infer(const InferContext& node) const override { return {node.inputs[0]}; }
  InputUse planning_use(std::size_t input) const override {
    return input == 1 && need_ != InputUse::kNothing ? InputUse::kNothing : InputUse::kElements;
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    auto plan = std::make_unique<Plan>();
    plan->known.resize(4);
    if (need_ == InputUse::kNothing) {
      require(reinterpret_cast<std::uintptr_t>(node.constants[1].data) % sizeof(float) == 0, "c is not aligned");
      std::copy_n(node.constants[1].as<float>(), 4, plan->known.data());
    }
    plan->input_need = need_;
    return plan;
  }

 private:
  struct Plan : NodePlan {
    std::vector<float> known;
    InputUse input_need;
    InputUse use(std::size_t input) const override { return input == 1 ? input_need : InputUse::kElements; }
    void run(const RunContext&, std::span<const ConstTensorView> in, std::span<const TensorView> out) const override {
      std::vector<float> added = known;
      if (input_need == InputUse::kBytes) std::memcpy(added.data(), in[1].data, added.size() * sizeof(float));
      if (input_need == InputUse::kElements) {
        require(reinterpret_cast<std::uintptr_t>(in[1].data) % sizeof(float) == 0, "c is not aligned");
        added.assign(in[1].as<float>(), in[1].as<float>() + added.size());
      }
      for (std::size_t i = 0; i < added.size(); ++i) out[0].as<float>()[i] = in[0].as<float>()[i] + added[i];
    }
  };
  std::string name_;
  InputUse need_;
};

class ForeignConstants : public ::testing::Test {
 protected:
  ForeignConstants() {
    registry_.add(std::make_unique<AddKnown>("Numbers", InputUse::kElements));
    registry_.add(std::make_unique<AddKnown>("Bytes", InputUse::kBytes));
    registry_.add(std::make_unique<AddKnown>("Nothing", InputUse::kNothing));
    registry_.add(std::make_unique<FunctionOperator>("Double", double_functions()));
  }
  std::shared_ptr<const Tensor> constant() const {
    return std::make_shared<const Tensor>(Tensor::foreign(DataType::kF32, {4}, bytes_));
  }
  Session session(const std::string& op) {
    Graph graph;
    const ValueId x = graph.add_input("x", DataType::kF32, {4});
    graph.add_output("y", graph.add_node(op, "node", {x, graph.add_constant("c", constant())}));
    return Session(std::move(graph), registry_);
  }
  static void expect_sum(const Session& session) {
    EXPECT_EQ(run_one(session, {input_of({10, 20, 30, 40})}), (std::vector<float>{11, 22, 33, 44}));
  }

  const std::shared_ptr<const OddBytes> bytes_ = std::make_shared<const OddBytes>();
  Registry registry_;
};

TEST_F(ForeignConstants, ACopyLivesAsLongAsThePlanThatReadsIt) {
  {
    const Session made = session("Numbers");
    EXPECT_EQ(bytes_->made, 0);  // nothing is read before a shape is planned
    expect_sum(made);
    EXPECT_EQ(bytes_->held, 1);
  }
  EXPECT_EQ(bytes_->held, 0);
}

TEST_F(ForeignConstants, ACopyGoesWithThePlanningWhenTheRunReadsNothing) {
  const Session made = session("Nothing");
  expect_sum(made);
  EXPECT_EQ(bytes_->made, 1);
  EXPECT_EQ(bytes_->held, 0);
  EXPECT_GT(bytes_->forgotten, 0);
}

TEST_F(ForeignConstants, NobodyCopiesWhatIsReadAsBytes) {
  expect_sum(session("Bytes"));
  EXPECT_EQ(bytes_->made, 0);
}

TEST_F(ForeignConstants, FoldingReadsAnAlignedCopyAndDropsIt) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {4});
  const ValueId c = graph.add_constant("c", constant());
  graph.add_output("twice", graph.add_node("Double", "folded", {c}));
  graph.add_output("x", graph.add_node("Double", "node", {x}));
  const Session made(std::move(graph), registry_);
  EXPECT_EQ(bytes_->made, 1);
  EXPECT_EQ(bytes_->held, 0);
  EXPECT_EQ(run_one(made, {input_of({0, 0, 0, 0})}), (std::vector<float>{2, 4, 6, 8}));
}

TEST_F(ForeignConstants, OneThatLeavesTheGraphIsCopiedOut) {
  Graph graph;
  graph.add_input("x", DataType::kF32, {4});
  graph.add_output("c", graph.add_constant("c", constant()));
  const Session made(std::move(graph), registry_);
  EXPECT_EQ(run_one(made, {input_of({0, 0, 0, 0})}), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(ForeignConstants, ATensorsOwnViewIsAlignedAndReadOnly) {
  Tensor tensor = Tensor::foreign(DataType::kF32, {4}, bytes_);
  EXPECT_TRUE(tensor.is_shared());
  EXPECT_EQ(std::as_const(tensor).data<float>()[1], 2);
  EXPECT_EQ(std::as_const(tensor).data<float>()[0], 1);
  EXPECT_EQ(bytes_->made, 1);
  EXPECT_THROW(tensor.view(), Error);
}

}  // namespace
}  // namespace headway::testing
