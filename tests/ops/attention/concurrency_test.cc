// One plan run from many threads, at any number of workers, inside a parallel region, at thousands of shapes: the same
// bits every time, and memory that does not grow.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "tests/ops/matmul/allocation_counter.h"
#include "tests/support/paths.h"

namespace headway::testing {
namespace {

class Concurrency : public ::testing::TestWithParam<Path> {
 protected:
  static std::vector<float> values_of(Strided& tensor) {
    std::vector<float> values;
    each(tensor.view().dims, [&](auto b, auto h, auto i, auto d) { values.push_back(tensor.at(b, h, i, d)); });
    return values;
  }
  static bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
  static CaseShape shape() {
    CaseShape result;
    result.spec.type = GetParam().type;
    result.spec.batch = 2;
    result.spec.num_heads = 3;
    result.spec.query_len = 37;
    result.spec.key_len = 133;
    result.spec.head_dim = head_width(GetParam(), 24);
    result.spec.mask = MaskKind::kAdditive;
    result.layout = Layout::kBshd;
    return result;
  }
};

TEST_P(Concurrency, SameBitsAtAnyNumberOfWorkers) {
  for (const std::int64_t queries : {1, 37, 200}) {
    CaseShape described = shape();
    described.spec.query_len = queries;
    described.spec.key_len = queries == 1 ? 1000 : 133;  // one query: the keys may be what is split
    AttentionCase problem(described);
    if (!refusal(GetParam(), problem.spec()).empty()) GTEST_SKIP();
    run_path(GetParam(), problem, Threads::openmp(1));
    const std::vector<float> expected = values_of(problem.out);
    for (const int workers : {2, 3, 8}) {
      run_path(GetParam(), problem, Threads::openmp(workers));
      EXPECT_TRUE(same_bits(values_of(problem.out), expected)) << workers << " workers, " << queries << " queries";
    }
  }
}

TEST_P(Concurrency, OnePlanOnEightThreadsAtOnce) {
  AttentionCase problem(shape());
  if (!refusal(GetParam(), problem.spec()).empty()) GTEST_SKIP();
  const SimdCap cap(GetParam().simd);
  const Attention attention(problem.spec(), {GetParam().implementation});
  const auto run_once = [&](const Threads& threads, Strided* out) {
    const AlignedBuffer workspace(attention.workspace_bytes(threads.workers()));
    AttentionArgs args = problem.args();
    args.out = out->view();
    attention.run(args, workspace.data(), threads);
  };
  Strided first(problem.out.view().dims, Layout::kBshd, GetParam().type);
  run_once(Threads::openmp(1), &first);
  const std::vector<float> expected = values_of(first);

  std::vector<Strided> outs(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < outs.size(); ++t) {
    outs[t] = Strided(problem.out.view().dims, Layout::kBshd, GetParam().type);
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 3; ++repeat) run_once(Threads::openmp(t % 2 == 0 ? 4 : 2), &outs[t]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Strided& out : outs) EXPECT_TRUE(same_bits(values_of(out), expected));

  outs.resize(2);
#pragma omp parallel for num_threads(2)
  for (int t = 0; t < 2; ++t) run_once(Threads::openmp(2), &outs[static_cast<std::size_t>(t)]);
  for (Strided& out : outs) EXPECT_TRUE(same_bits(values_of(out), expected)) << "inside a parallel region";
}

TEST_P(Concurrency, AWarmRunAllocatesNothing) {
  for (const std::int64_t queries : {1, 70}) {
    CaseShape described = shape();
    described.spec.query_len = queries;
    AttentionCase problem(described);
    if (!refusal(GetParam(), problem.spec()).empty()) GTEST_SKIP();
    const SimdCap cap(GetParam().simd);
    const Attention attention(problem.spec(), {GetParam().implementation});
    const Threads threads = Threads::openmp(3);
    const AlignedBuffer workspace(attention.workspace_bytes(threads.workers()));
    const AttentionArgs args = problem.args();
    attention.run(args, workspace.data(), threads);
    const AllocationCounter counter;
    attention.run(args, workspace.data(), threads);
    EXPECT_EQ(counter.count(), 0) << queries << " queries";
  }
}

std::int64_t resident_pages() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  file >> total >> resident;
  return resident;
}

TEST_P(Concurrency, MemoryStaysFlatOverThousandsOfShapes) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "freed memory stays in the sanitizer's quarantine";
#endif
  Random random(17);
  CaseShape described;
  described.spec.type = GetParam().type;
  described.spec.head_dim = 4;
  const auto run_some = [&](int count) {
    for (int n = 0; n < count; ++n) {
      described.spec.query_len = random.between(1, 40);
      described.spec.key_len = random.between(1, 60);
      AttentionCase problem(described);
      if (!refusal(GetParam(), problem.spec()).empty()) return false;
      // One worker: ten thousand teams of threads would measure the machine's load.
      run_path(GetParam(), problem, Threads::serial());
    }
    return true;
  };
  if (!run_some(2000)) GTEST_SKIP();
  const std::int64_t warm = resident_pages();
  run_some(8000);
  EXPECT_LE(resident_pages() - warm, 512) << "pages of resident memory gained over 8000 shapes";
}

INSTANTIATE_TEST_SUITE_P(Paths, Concurrency, ::testing::ValuesIn(all_paths()),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace headway::testing
