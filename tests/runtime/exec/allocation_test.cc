// A run of shapes seen before allocates nothing, with the profiler on or off, at any number of workers seen before.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "headway/session.h"
#include "tests/runtime/exec/allocation_counter.h"
#include "tests/runtime/exec/test_operators.h"

namespace headway::testing {
namespace {

class Allocation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_count_allocations()) GTEST_SKIP() << "malloc cannot be replaced in this build";
  }
};

TEST_F(Allocation, TheCounterCounts) {
  AllocationCounter counter;
  // Through volatile pointers, or the compiler may leave out an allocation that nobody looks at.
  int* volatile one = new int(1);
  void* volatile two = std::malloc(10);
  void* volatile three = std::aligned_alloc(64, 64);
  const AlignedBuffer four(100);
  EXPECT_EQ(counter.stop(), 4);
  delete one;
  std::free(two);
  std::free(three);
  AllocationCounter nothing;
  EXPECT_EQ(nothing.stop(), 0);
}

TEST_F(Allocation, ANewShapeAllocates) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  const std::vector<float> x(10, 1.0f);
  std::vector<float> y(10);
  const ConstTensorView inputs[] = {input_of(x)};
  const TensorView outputs[] = {output_of(&y)};
  AllocationCounter counter;
  session.run(inputs, outputs, Threads::serial());
  EXPECT_GT(counter.stop(), 0);
}

TEST_F(Allocation, SteadyStateIsFree) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  const std::vector<float> x(60, 1.0f);
  std::vector<float> y(60);
  std::vector<float> spread(120);
  const ConstTensorView small[] = {view_of(x.data(), {40})};
  const ConstTensorView large[] = {view_of(x.data(), {60})};
  const ConstTensorView strided[] = {
      ConstTensorView(reinterpret_cast<const std::byte*>(x.data()), DataType::kF32, {30}, {2})};
  const TensorView small_out[] = {view_of(y.data(), {40})};
  const TensorView large_out[] = {view_of(y.data(), {60})};
  const TensorView strided_out[] = {TensorView(reinterpret_cast<std::byte*>(spread.data()), DataType::kF32, {30}, {4})};
  Profiler profiler({3, 1000});
  const auto run_all = [&](int workers, Profiler* p) {
    const Threads threads = Threads::openmp(workers);
    session.run(small, small_out, threads, p);
    session.run(large, large_out, threads, p);
    session.run(strided, strided_out, threads, p);
  };
  for (int workers : {1, 3}) {
    run_all(workers, nullptr);
    run_all(workers, &profiler);
  }
  for (int workers : {3, 1}) {
    run_all(workers, nullptr);  // OpenMP may build its team anew when its size changes
    for (Profiler* p : {static_cast<Profiler*>(nullptr), &profiler}) {
      AllocationCounter counter;
      for (int round = 0; round < 10; ++round) run_all(workers, p);
      EXPECT_EQ(counter.stop(), 0) << workers << " workers, profiler " << (p ? "on" : "off");
    }
  }
  EXPECT_EQ(y, std::vector<float>(60, 3.0f));
}

}  // namespace
}  // namespace headway::testing
