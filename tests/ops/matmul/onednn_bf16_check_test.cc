// The self-check must see what corrupt products look like, say so once, and leave good ones alone.
#include "ops/matmul/onednn_bf16_check.h"

#include <gtest/gtest.h>

#include "ops/base/numeric.h"
#include "ops/matmul/onednn_adapter.h"
#include "runtime/base/check.h"
#include "tests/runtime/error_of.h"

namespace headway::onednn {
namespace {

using headway::testing::expect_contains;

void multiply_well(const Bf16Problem& p, float* c) {
  for (std::int64_t i = 0; i < p.rows; ++i) {
    for (std::int64_t n = 0; n < p.columns; ++n) {
      float sum = p.bias[static_cast<std::size_t>(n)];
      for (std::int64_t k = 0; k < p.depth; ++k) {
        sum += widen(p.a[static_cast<std::size_t>(i * p.depth + k)]) *
               widen(p.b[static_cast<std::size_t>(n * p.depth + k)]);
      }
      c[i * p.columns + n] = widen(to_bfloat16(sum));
    }
  }
}

TEST(Bf16SelfCheck, PassesARightProduct) { EXPECT_EQ(bf16_product_fault(multiply_well), ""); }

TEST(Bf16SelfCheck, SeesCorruption) {
  const auto fault = [](auto corrupt) {
    return bf16_product_fault([&](const Bf16Problem& p, float* c) {
      multiply_well(p, c);
      corrupt(p, c);
    });
  };
  expect_contains(fault([](const Bf16Problem& p, float* c) { c[p.columns - 1] = std::nanf(""); }), "element (0, 16)");
  expect_contains(fault([](const Bf16Problem& p, float* c) { c[(p.rows - 1) * p.columns] *= 1.02f; }), "(0, 0)");
  expect_contains(fault([](const Bf16Problem& p, float* c) {
                    if (p.rows == 96) c[95 * 128 + 127] = 0;
                  }),
                  "96 x 128 x 256, element (95, 127) is 0");
  // The last step of an odd depth left out: what pairs of bf16 invite.
  EXPECT_NE(fault([](const Bf16Problem& p, float* c) {
              if (p.depth % 2 == 0) return;
              for (std::int64_t n = 0; n < p.columns; ++n) {
                c[n] -= widen(p.a[static_cast<std::size_t>(p.depth - 1)]) *
                        widen(p.b[static_cast<std::size_t>((n + 1) * p.depth - 1)]);
              }
            }),
            "");
  expect_contains(fault([](const Bf16Problem&, float*) { fail(ErrorCode::kInternal, "no such primitive"); }),
                  "no such primitive");
}

TEST(Bf16SelfCheck, RefusesLoudlyAndOnce) {
  int calls = 0;
  Bf16SelfCheck check("a bf16 product", [&](const Bf16Problem& p, float* c) {
    ++calls;
    multiply_well(p, c);
    c[0] = -c[0];
  });
  ::testing::internal::CaptureStderr();
  const std::string refusal = check.refusal();
  EXPECT_EQ(check.refusal(), refusal);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(calls, 1);
  expect_contains(refusal, "failed its self-check: of a product of 1 x 17 x 33, element (0, 0)");
  expect_contains(said, "headway: a bf16 product will not be used: " + refusal + "\n");
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

TEST(Bf16SelfCheck, OfThisProcess) {
  std::cout << "oneDNN bf16, packed weights: " << packed_bf16_refusal() << "\ntiles: " << plain_bf16_refusal() << "\n";
  EXPECT_EQ(packed_bf16_refusal().empty(), cpu_multiplies_bf16());
  EXPECT_EQ(plain_bf16_refusal().empty(), cpu_multiplies_bf16());
}

}  // namespace
}  // namespace headway::onednn
