// Attention on our own pool: the bits of the serial run at any number of workers, and in a child of a process that has
// used the pool.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/in_child.h"
#include "tests/support/paths.h"

namespace headway::testing {
namespace {

class OwnPool : public ::testing::TestWithParam<Path> {
 protected:
  OwnPool() : problem_(shape()) {}
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
  std::vector<float> run(const Threads& threads) {
    run_path(GetParam(), problem_, threads);
    std::vector<float> values;
    each(problem_.out.view().dims,
         [&](auto b, auto h, auto i, auto d) { values.push_back(problem_.out.at(b, h, i, d)); });
    return values;
  }
  static bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }

  AttentionCase problem_;
};

TEST_P(OwnPool, TheBitsOfTheSerialRun) {
  if (!refusal(GetParam(), problem_.spec()).empty()) GTEST_SKIP();
  const std::vector<float> expected = run(Threads::serial());
  for (const int workers : {2, 3, 8}) EXPECT_TRUE(same_bits(run(Threads::pool(workers)), expected)) << workers;
}

TEST_P(OwnPool, AfterAForkTheChildGetsTheSameBits) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer allows no threads after a fork";
#endif
  if (!refusal(GetParam(), problem_.spec()).empty()) GTEST_SKIP();
  const Threads pool = Threads::pool(3);
  const std::vector<float> expected = run(pool);
  EXPECT_EQ(
      fault_in_child([&] { return same_bits(run(pool), expected) && same_bits(run(Threads::serial()), expected); }),
      "");
  EXPECT_TRUE(same_bits(run(pool), expected));
}

INSTANTIATE_TEST_SUITE_P(Paths, OwnPool, ::testing::ValuesIn(all_paths()),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace headway::testing
