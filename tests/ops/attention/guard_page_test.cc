// Keys that lengths, the causal limit or a window hide lie on pages that cannot be read: touching one ends the test.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/support/paths.h"

namespace headway::testing {
namespace {

/// `used_bytes` readable bytes between two pages that cannot be read: they end exactly where the page after begins, or
/// begin exactly where the page before ends.
class Guarded {
 public:
  enum class Against { kEnd, kBegin };
  Guarded(std::size_t used_bytes, Against against) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t body_bytes = (used_bytes + page - 1) / page * page;
    bytes_ = body_bytes + 2 * page;
    memory_ = static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(memory_, MAP_FAILED);
    EXPECT_EQ(mprotect(memory_ + page, body_bytes, PROT_READ | PROT_WRITE), 0);
    data_ = memory_ + page + (against == Against::kEnd ? body_bytes - used_bytes : 0);
  }
  ~Guarded() { munmap(memory_, bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* memory_;
  std::size_t bytes_;
  std::byte* data_;
};

class GuardPages : public ::testing::TestWithParam<Path> {
 protected:
  /// Runs `problem` (one batch entry, one head, contiguous) with only keys and values [begin, end) in readable memory
  /// and expects what it gave with all of them.
  static void expect_same_with_only(AttentionCase& problem, std::int64_t begin, std::int64_t end,
                                    Guarded::Against against) {
    if (!refusal(GetParam(), problem.spec()).empty()) return;
    run_path(GetParam(), problem);
    const auto row_bytes = problem.spec().head_dim * static_cast<std::int64_t>(size_bytes(problem.spec().type));
    const auto bytes = static_cast<std::size_t>((end - begin) * row_bytes);
    const Guarded keys(bytes, against);
    const Guarded values(bytes, against);
    AttentionArgs args = problem.args();
    if (bytes > 0) {
      std::memcpy(keys.data(), args.key.data + begin * row_bytes, bytes);
      std::memcpy(values.data(), args.value.data + begin * row_bytes, bytes);
    }
    args.key.data = keys.data() - begin * row_bytes;
    args.value.data = values.data() - begin * row_bytes;
    Strided out(problem.out.view().dims, Layout::kBhsd, problem.spec().type);
    args.out = out.view();
    run_path(GetParam(), problem.spec(), args, Threads::serial());
    each(args.out.dims,
         [&](auto b, auto h, auto i, auto c) { EXPECT_EQ(out.at(b, h, i, c), problem.out.at(b, h, i, c)); });
  }
  static CaseShape sized(std::int64_t queries, std::int64_t keys, std::int64_t d) {
    CaseShape shape;
    shape.spec.type = GetParam().type;
    shape.spec.query_len = queries;
    shape.spec.key_len = keys;
    shape.spec.head_dim = head_width(GetParam(), d);
    return shape;
  }
};

TEST_P(GuardPages, KeysBeyondTheLengthAreNotRead) {
  for (const std::int64_t length : {0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 49, 100}) {
    for (const std::int64_t d : {1, 5, 8, 16, 17, 64}) {
      for (const std::int64_t queries : {1, 20}) {
        CaseShape shape = sized(queries, 160, d);
        shape.spec.key_lengths = true;
        shape.lengths = {length};
        AttentionCase problem(shape);
        expect_same_with_only(problem, 0, length, Guarded::Against::kEnd);
      }
    }
  }
}

TEST_P(GuardPages, KeysAfterTheCausalLimitAreNotRead) {
  for (const std::int64_t queries : {1, 7, 16, 17, 50}) {
    for (const std::int64_t d : {3, 16, 20}) {
      CaseShape shape = sized(queries, 160, d);
      shape.spec.causal = Causal::kTopLeft;
      AttentionCase problem(shape);
      expect_same_with_only(problem, 0, queries, Guarded::Against::kEnd);
    }
  }
}

TEST_P(GuardPages, KeysBeforeTheWindowAreNotRead) {
  for (const std::int64_t left : {0, 4, 17}) {
    for (const std::int64_t queries : {1, 16, 23}) {
      CaseShape shape = sized(queries, 160, 16);
      shape.spec.causal = Causal::kBottomRight;
      shape.spec.window.left = left;
      AttentionCase problem(shape);
      expect_same_with_only(problem, 160 - queries - left, 160, Guarded::Against::kBegin);
    }
  }
}

/// The last key ends where a page ends: nothing may be read past it, not even to be thrown away.
TEST_P(GuardPages, NothingIsReadPastTheLastKey) {
  for (const std::int64_t keys : {1, 5, 16, 17, 33}) {
    for (const std::int64_t d : {1, 3, 8, 17, 20}) {
      AttentionCase problem(sized(9, keys, d));
      expect_same_with_only(problem, 0, keys, Guarded::Against::kEnd);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, GuardPages, ::testing::ValuesIn(all_paths()),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace headway::testing
