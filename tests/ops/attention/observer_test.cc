// Who sees which attention: the thread's youngest observer, before each run, and nobody on other threads.
#include "headway/attention_observer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>

#include "tests/support/attention_case.h"

namespace headway::testing {
namespace {

class Counter final : public AttentionObserver {
 public:
  void before_run(const AttentionSpec& spec, const AttentionArgs& args) override {
    ++seen;
    queries = spec.query_len;
    query = args.query.data;
    if (refuse) throw Error(ErrorCode::kInvalidArgument, "seen enough");
    if (nested) nested();
  }
  int seen = 0;
  bool refuse = false;
  std::int64_t queries = 0;
  const std::byte* query = nullptr;
  std::function<void()> nested;
};

CaseShape shape() {
  CaseShape result;
  result.spec.query_len = 3;
  result.spec.key_len = 4;
  result.spec.head_dim = 8;
  return result;
}

TEST(AttentionObserver, SeesTheRunsOfItsThreadWhileItLives) {
  AttentionCase problem(shape());
  const Attention attention(problem.spec());
  const auto run = [&] {
    const AlignedBuffer workspace(attention.workspace_bytes(1));
    attention.run(problem.args(), workspace.data(), Threads::serial());
  };
  run();
  Counter outer;
  run();
  EXPECT_EQ(outer.seen, 1);
  EXPECT_EQ(outer.queries, 3);
  EXPECT_EQ(outer.query, problem.query.view().data);
  {
    Counter inner;
    inner.nested = run;  // what it runs itself is not shown
    run();
    EXPECT_EQ(inner.seen, 1);
    inner.nested = nullptr;
    inner.refuse = true;
    problem.poison_outputs();
    EXPECT_THROW(run(), Error);
    EXPECT_TRUE(std::isnan(problem.out.at(0, 0, 0, 0))) << "the run went on";
    inner.refuse = false;
    run();
    EXPECT_EQ(inner.seen, 3);
  }
  EXPECT_EQ(outer.seen, 1);
  std::thread(run).join();
  EXPECT_EQ(outer.seen, 1);
  run();
  EXPECT_EQ(outer.seen, 2);
}

}  // namespace
}  // namespace headway::testing
