// Query, key, value and out as columns of one buffer [T, Q | K | V | O]: what engines that project into one matrix
// have.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/paths.h"

namespace headway::testing {
namespace {

class Columns : public ::testing::TestWithParam<Path> {};

TEST_P(Columns, OutBesideItsInputs) {
  constexpr std::int64_t kBatch = 2, kHeads = 3, kLength = 37;
  const std::int64_t dim = head_width(GetParam(), 5), width = kHeads * dim, row = 4 * width;
  AttentionSpec spec;
  spec.type = GetParam().type;
  spec.batch = kBatch, spec.num_heads = kHeads, spec.query_len = spec.key_len = kLength, spec.head_dim = dim;
  if (!refusal(GetParam(), spec).empty()) GTEST_SKIP() << refusal(GetParam(), spec);

  const auto element = static_cast<std::int64_t>(size_bytes(spec.type));
  Tensor joined(spec.type, {kBatch, kLength, row}), alone(spec.type, {kBatch, kHeads, kLength, dim});
  Random random(1);
  for (std::int64_t i = 0; i < joined.count(); ++i) {
    const auto value = static_cast<float>(random.normal());
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (spec.type == DataType::kF32) {
      joined.data<float>()[i] = value;
    } else {
      joined.data<BFloat16>()[i] = {static_cast<std::uint16_t>(bits >> 16)};
    }
  }
  const auto part = [&](std::int64_t index) {
    return TensorView(joined.view().data + index * width * element, spec.type, {kBatch, kHeads, kLength, dim},
                      {kLength * row, dim, row, 1});
  };
  const std::vector<std::byte> before(joined.view().data, joined.view().data + joined.count() * element);
  AttentionArgs args;
  args.query = part(0), args.key = part(1), args.value = part(2), args.out = alone.view();
  run_path(GetParam(), spec, args, Threads::pool(2));
  args.out = part(3);
  run_path(GetParam(), spec, args, Threads::pool(2));
  for (std::int64_t t = 0; t < kBatch * kLength; ++t) {
    const std::byte* const now = joined.view().data + t * row * element;
    ASSERT_EQ(std::memcmp(now, before.data() + t * row * element, static_cast<std::size_t>(3 * width * element)), 0)
        << "columns of the inputs, row " << t;
    for (std::int64_t h = 0; h < kHeads; ++h) {
      const std::int64_t at = ((t / kLength * kHeads + h) * kLength + t % kLength) * dim;
      ASSERT_EQ(std::memcmp(now + (3 * width + h * dim) * element, alone.view().data + at * element,
                            static_cast<std::size_t>(dim * element)),
                0)
          << "row " << t << ", head " << h;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, Columns, ::testing::ValuesIn(all_paths()),
                         [](const auto& path) { return name(path.param); });

}  // namespace
}  // namespace headway::testing
