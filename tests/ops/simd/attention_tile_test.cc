// The kernels of the attention tile one by one against double, on every SIMD target: every number of vectors, tails of
// keys, depth and columns, starts that are not aligned, and nothing written outside the outputs.
#include "ops/simd/attention_tile.h"

#include "tests/ops/simd/tile_case.h"

namespace headway::testing {
namespace {

struct Sums {
  double value = 0;
  double magnitude = 0;
  void add(float a, float b) {
    const double term = static_cast<double>(a) * static_cast<double>(b);
    value += term;
    magnitude += std::abs(term);
  }
  double bound() const { return 1e-6 * magnitude; }
};

TEST(AttentionTile, ScoresOfEveryTileAndTail) {
  on_every_target([](const std::string& target) {
    const AttentionTileKernels kernels = attention_tile_kernels();
    for (int vectors = 1; vectors <= kernels.max_vectors; ++vectors) {
      const std::int64_t lanes = vectors * kernels.lanes;
      for (const std::int64_t depth : {1, 7, 8, 9, 17, 32}) {
        const Guarded queries(random_numbers(depth * lanes, 1));
        for (std::int64_t keys = 1; keys <= 25; ++keys) {
          const std::int64_t stride = depth + 3;
          const std::vector<float> k = random_numbers(keys * stride + 1, 2);
          for (int first = 0; first < vectors; ++first) {
            for (const bool accumulate : {false, true}) {
              const Guarded scores((keys + 8) * lanes);
              const Guarded block_max(lanes);
              const std::vector<float> before = random_numbers((keys + 8) * lanes, 3);
              for (std::int64_t i = 0; i < (keys + 8) * lanes && accumulate; ++i) {
                scores[i] = before[static_cast<std::size_t>(i)];
              }
              for (std::int64_t i = 0; i < lanes; ++i) block_max[i] = -1;
              const float* const key = k.data() + 1;  // not aligned
              kernels.score({.key = key,
                             .key_stride = stride,
                             .keys = keys,
                             .depth = depth,
                             .queries = queries.data(),
                             .vectors = vectors,
                             .first_vector = first,
                             .accumulate = accumulate,
                             .scores = scores.data(),
                             .block_max = block_max.data()});
              for (std::int64_t lane = 0; lane < lanes; ++lane) {
                float max = -1;
                for (std::int64_t j = 0; j < keys; ++j) {
                  const float start = accumulate ? before[static_cast<std::size_t>(j * lanes + lane)] : kPoison;
                  const float got = scores[j * lanes + lane];
                  if (lane < first * kernels.lanes) {
                    ASSERT_EQ(got, start) << target << " lane " << lane << " is left out";
                    continue;
                  }
                  Sums sum;
                  if (accumulate) sum.add(start, 1);
                  for (std::int64_t c = 0; c < depth; ++c) sum.add(key[j * stride + c], queries[c * lanes + lane]);
                  ASSERT_NEAR(got, sum.value, sum.bound())
                      << target << " vectors " << vectors << " first " << first << " keys " << keys << " depth "
                      << depth << " key " << j << " lane " << lane;
                  max = std::max(max, got);
                }
                if (!accumulate) {
                  ASSERT_EQ(block_max[lane], max) << target << " lane " << lane;
                }
              }
              ASSERT_TRUE(scores.clean_beyond((keys + 8) * lanes)) << target;
              ASSERT_TRUE(block_max.clean_beyond(lanes)) << target;
            }
          }
        }
      }
    }
  });
}

TEST(AttentionTile, ContextOfEveryColumnCountInPlaceAndPacked) {
  on_every_target([](const std::string& target) {
    const AttentionTileKernels kernels = attention_tile_kernels();
    for (int vectors = 1; vectors <= kernels.max_vectors; ++vectors) {
      const std::int64_t lanes = vectors * kernels.lanes;
      for (const std::int64_t keys : {0, 1, 7, 8, 17}) {
        const Guarded probs(random_numbers(keys * lanes + 1, 4));
        const Guarded rescale(random_numbers(lanes, 5));
        for (std::int64_t columns = 1; columns <= 27; ++columns) {
          for (const bool packed : {false, true}) {
            const std::int64_t width = packed ? kernels.value_columns : columns + 5;
            const std::int64_t panels = packed ? (columns + width - 1) / width : 1;
            const std::int64_t panel_stride = keys * width;
            const std::vector<float> v = random_numbers(panels * panel_stride + 2, 6);
            const float* const value = v.data() + 1;  // not aligned
            for (const bool rescaled : {false, true}) {
              const Guarded context(columns * lanes);
              const std::vector<float> before = random_numbers(columns * lanes, 7);
              for (std::int64_t i = 0; i < columns * lanes && rescaled; ++i) {
                context[i] = before[static_cast<std::size_t>(i)];
              }
              ContextTile tile{.value = value,
                               .key_stride = width,
                               .columns = columns,
                               .panel_columns = packed ? width : 0,
                               .panel_stride = panel_stride,
                               .vector_end = {keys / 2, keys / 2, keys},
                               .vectors = vectors,
                               .scores = probs.data(),
                               .rescale = rescaled ? rescale.data() : nullptr,
                               .context = context.data()};
              tile.vector_end[vectors - 1] = keys;
              kernels.context(tile);
              for (std::int64_t c = 0; c < columns; ++c) {
                for (std::int64_t lane = 0; lane < lanes; ++lane) {
                  Sums sum;
                  if (rescaled) sum.add(rescale[lane], before[static_cast<std::size_t>(c * lanes + lane)]);
                  for (std::int64_t j = 0; j < tile.vector_end[lane / kernels.lanes]; ++j) {
                    const std::int64_t at = packed ? c / width * panel_stride + j * width + c % width : j * width + c;
                    sum.add(value[at], probs[j * lanes + lane]);
                  }
                  ASSERT_NEAR(context[c * lanes + lane], sum.value, sum.bound() + 1e-30)
                      << target << " vectors " << vectors << " keys " << keys << " columns " << columns << " packed "
                      << packed << " column " << c << " lane " << lane;
                }
              }
              ASSERT_TRUE(context.clean_beyond(columns * lanes)) << target << " columns " << columns;
            }
          }
        }
      }
    }
  });
}

TEST(AttentionTile, LoadAndStoreEveryWidthAndStride) {
  on_every_target([](const std::string& target) {
    const AttentionTileKernels kernels = attention_tile_kernels();
    for (int vectors = 1; vectors <= kernels.max_vectors; ++vectors) {
      const std::int64_t lanes = vectors * kernels.lanes;
      for (std::int64_t columns = 1; columns <= 37; ++columns) {
        for (const std::int64_t stride : {1, 2}) {
          const std::int64_t row = columns * stride + 3;
          const std::vector<float> source = random_numbers(lanes * row + 1, 8);
          std::vector<const std::byte*> from;
          for (std::int64_t lane = 0; lane < lanes; ++lane) {
            from.push_back(reinterpret_cast<const std::byte*>(source.data() + 1 + lane * row));
          }
          const Guarded panel(columns * lanes);
          kernels.load({.rows = from.data(),
                        .column_stride = stride,
                        .columns = columns,
                        .scale = 0.3f,
                        .vectors = vectors,
                        .panel = panel.data()});
          for (std::int64_t lane = 0; lane < lanes; ++lane) {
            for (std::int64_t c = 0; c < columns; ++c) {
              ASSERT_EQ(panel[c * lanes + lane], 0.3f * source[static_cast<std::size_t>(1 + lane * row + c * stride)])
                  << target << " lane " << lane << " column " << c;
            }
          }
          ASSERT_TRUE(panel.clean_beyond(columns * lanes)) << target;

          const Guarded factor(random_numbers(lanes, 9));
          const Guarded out(lanes * row + 1);
          std::vector<std::byte*> to;
          for (std::int64_t lane = 0; lane < lanes; ++lane) {
            to.push_back(reinterpret_cast<std::byte*>(out.data() + 1 + lane * row));
          }
          StorePanel store{.panel = panel.data(),
                           .columns = columns,
                           .vectors = vectors,
                           .factor = factor.data(),
                           .rows = to.data(),
                           .column_stride = stride};
          ASSERT_TRUE(kernels.store(store)) << target;
          for (std::int64_t i = 0; i < lanes * row; ++i) {
            const std::int64_t lane = i / row, at = i % row;
            const bool written = at % stride == 0 && at / stride < columns;
            const float expected = written ? factor[lane] * panel[at / stride * lanes + lane] : kPoison;
            ASSERT_EQ(out[1 + i], expected) << target << " columns " << columns << " lane " << lane << " at " << at;
          }
          ASSERT_EQ(out[0], kPoison);
          ASSERT_TRUE(out.clean_beyond(lanes * row + 1)) << target;
          panel[(columns - 1) * lanes + lanes - 1] = std::nanf("");
          ASSERT_FALSE(kernels.store(store)) << target << ": a NaN was called finite";
        }
      }
    }
  });
}

}  // namespace
}  // namespace headway::testing
