// The implementation `tiled`: queries on SIMD lanes, blocks of keys, a running softmax; key and value are read as they
// lie in memory. Decides tasks, workspace and which blocks of keys are visited; the steps on one block are
// tiled_block.cc's, the arithmetic is ops/simd's.
#include <algorithm>

#include "ops/attention/implementation.h"
#include "ops/attention/tiled_block.h"
#include "ops/attention/tiled_scores.h"

namespace headway {

void PhaseClock::report(Profiler* profiler, int worker) const {
  if (!on_) return;
  const Zone* const zones[kPhases] = {&kZonePack, &kZoneScores, &kZoneSoftmax, &kZoneContext};
  std::uint64_t begin = begin_;
  for (int p = 0; p < kPhases; ++p) {
    profiler->add_spread(worker, *zones[p], begin, last_, ticks_[p], work_[p], count_[p]);
    begin += ticks_[p];
  }
}

namespace {

/// Hands out a worker's workspace front to back; every piece is 64-byte aligned.
class Carver {
 public:
  explicit Carver(std::byte* at) : at_(reinterpret_cast<float*>(at)) {}
  float* take(std::int64_t floats) {
    float* const piece = at_;
    at_ += (floats + 15) / 16 * 16;
    return piece;
  }
  template <class T>
  T* take_as(std::int64_t count) {
    return reinterpret_cast<T*>(take(count * static_cast<std::int64_t>(sizeof(T)) / 4));
  }

 private:
  float* at_;
};

/// Dense rows [rows, columns] from rows of any strides.
void pack_rows(const float* from, std::int64_t row_stride, std::int64_t column_stride, std::int64_t rows,
               std::int64_t columns, float* to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) to[r * columns + c] = from[r * row_stride + c * column_stride];
  }
}

/// Column panels [columns / kWidth][rows][kWidth] from rows of any strides.
template <std::int64_t kWidth>
void pack_panels_of(const float* from, std::int64_t row_stride, std::int64_t column_stride, std::int64_t rows,
                    std::int64_t columns, float* to) {
  for (std::int64_t c = 0; c < columns; c += kWidth, to += rows * kWidth) {
    const float* const top = from + c * column_stride;
    if (column_stride == 1 && c + kWidth <= columns) {
      for (std::int64_t r = 0; r < rows; ++r) std::copy_n(top + r * row_stride, kWidth, to + r * kWidth);
      continue;
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < std::min(kWidth, columns - c); ++i) {
        to[r * kWidth + i] = top[r * row_stride + i * column_stride];
      }
    }
  }
}

void pack_panels(const float* from, std::int64_t row_stride, std::int64_t column_stride, std::int64_t rows,
                 std::int64_t columns, std::int64_t width, float* to) {
  if (width == 8) return pack_panels_of<8>(from, row_stride, column_stride, rows, columns, to);
  return pack_panels_of<24>(from, row_stride, column_stride, rows, columns, to);
}

class TiledAttention final : public AttentionImplementation {
 public:
  explicit TiledAttention(const AttentionSpec& spec)
      : spec_(spec), kernels_(attention_tile_kernels()), rows_(softmax_kernels()), geometry_(spec, kernels_) {}

  std::string explain() const override { return geometry_.explain(kernels_); }
  std::size_t workspace_bytes(int workers) const override {
    return static_cast<std::size_t>(worker_floats()) * sizeof(float) * static_cast<std::size_t>(workers);
  }

  void run(const AttentionArgs& args, std::byte* workspace, const Threads& threads, Profiler* profiler) const override {
    const BiasSource bias(spec_, args);
    const bool mean = spec_.scores_output == ScoresOutput::kMeanProbabilities;
    const std::int64_t units = mean ? 1 : spec_.num_heads / geometry_.heads_per_unit;
    threads.parallel_for(spec_.batch * units * geometry_.chunks, [&](std::int64_t task, int worker) {
      PhaseClock clock(profiler != nullptr);
      std::byte* const own = workspace + static_cast<std::size_t>(worker_floats()) * sizeof(float) * worker;
      const std::int64_t chunk = task % geometry_.chunks;
      const std::int64_t batch = task / geometry_.chunks / units;
      const std::int64_t unit = task / geometry_.chunks % units;
      const std::int64_t head = unit * geometry_.heads_per_unit;
      // Averaged scores add up over the heads of one task, in order.
      for (std::int64_t h = head; h < (mean ? spec_.num_heads : head + 1); ++h) {
        run_chunk(args, bias, {batch, h}, chunk, own, clock);
      }
      clock.report(profiler, worker);
    });
  }

 private:
  // A cache line more than the buffers need, so that workers do not lie a power of two apart.
  std::int64_t worker_floats() const { return geometry_.buffers().total() + 16; }

  void run_chunk(const AttentionArgs& args, const BiasSource& bias, const TiledUnit& unit, std::int64_t chunk,
                 std::byte* workspace, PhaseClock& clock) const {
    const Visibility visibility(spec_, args, unit.batch);
    const std::int64_t wide = geometry_.group_lanes;
    const std::int64_t first = chunk * geometry_.groups_per_chunk;
    const int count = static_cast<int>(std::min(geometry_.groups_per_chunk, geometry_.groups - first));

    Carver carver(workspace);
    const BlockScratch scratch{.scores = carver.take((geometry_.key_block + 8) * wide),
                               .block_max = carver.take(wide),
                               .rescale = carver.take(wide),
                               .bias_rows = carver.take(geometry_.buffers().bias_rows),
                               .bias = carver.take(geometry_.buffers().bias)};
    float* const packed_key = carver.take(geometry_.buffers().key);
    float* const packed_value = carver.take(geometry_.buffers().value);
    float* const score_rows = carver.take(geometry_.buffers().score_rows);
    const TiledTask task{spec_, kernels_, geometry_, bias, args, unit, scratch, clock};

    GroupRows rows[TiledGeometry::kMaxGroupsPerChunk];
    GroupPanels panels[TiledGeometry::kMaxGroupsPerChunk];
    bool started[TiledGeometry::kMaxGroupsPerChunk] = {};
    KeyRange hull{spec_.key_len, 0};
    for (int g = 0; g < count; ++g) {
      rows[g].group = geometry_.group(first + g);
      rows[g].tables = {.query_rows = carver.take_as<const float*>(wide),
                        .out_rows = carver.take_as<float*>(wide),
                        .score_rows = carver.take_as<float*>(wide),
                        .first = carver.take_as<std::int32_t>(wide),
                        .end = carver.take_as<std::int32_t>(wide)};
      panels[g] = {.queries = carver.take(spec_.head_dim * wide),
                   .context = carver.take(spec_.value_head_dim * wide),
                   .maximum = carver.take(wide),
                   .sum = carver.take(wide),
                   .bias_max = carver.take(wide)};
      place_rows(spec_, args, unit, visibility, geometry_.lanes, &rows[g]);
      begin_group(task, rows[g], panels[g]);
      hull = {std::min(hull.begin, rows[g].any.begin), std::max(hull.end, rows[g].any.end)};
      if (spec_.scores_output != ScoresOutput::kNone) {
        place_scores(task, score_rows, &rows[g]);
        clear_scores(task, rows[g]);
      }
    }

    const auto visit = [&](const KeyRange& keys, bool tail) {
      for (std::int64_t begin = keys.begin; begin < keys.end; begin += geometry_.key_block) {
        const std::int64_t end = std::min(begin + geometry_.key_block, keys.end);
        const KeyBlock block = read_block(args, unit, {begin, end}, tail, packed_key, packed_value);
        clock.lap(PhaseClock::kPack, {});
        for (int g = 0; g < count; ++g) started[g] = add_block(task, rows[g], panels[g], block, !started[g]);
      }
    };
    if (has_raw_scores(spec_)) {
      for (std::int64_t begin = 0; begin < spec_.key_len; begin += geometry_.key_block) {
        const std::int64_t end = std::min(begin + geometry_.key_block, spec_.key_len);
        for (int g = 0; g < count; ++g) {
          raw_scores(task, rows[g], panels[g], read_block(args, unit, {begin, end}, false, packed_key, packed_value));
        }
      }
    }
    visit(hull, false);
    visit({visibility.tail_begin(), visibility.tail_end()}, true);

    for (int g = 0; g < count; ++g) {
      if (spec_.scores_output != ScoresOutput::kNone) finish_scores(task, rows_, rows[g], panels[g]);
      end_group(task, rows[g], panels[g], started[g]);
    }
  }

  /// Keys as the kernels read them: in place, or packed where the strides do not suit.
  KeyBlock read_block(const AttentionArgs& args, const TiledUnit& unit, const KeyRange& keys, bool tail,
                      float* packed_key, float* packed_value) const {
    const std::int64_t kv_head = unit.head / (spec_.num_heads / spec_.num_kv_heads);
    const auto at = [&](const ConstTensorView& view) {
      return view.as<float>() + unit.batch * view.strides[0] + kv_head * view.strides[1] + keys.begin * view.strides[2];
    };
    const std::int64_t count = keys.end - keys.begin;
    const Dims& ks = args.key.strides;
    const Dims& vs = args.value.strides;
    KeyBlock block{keys.begin, keys.end, at(args.key), ks[2], at(args.value), vs[2], 0, 0, tail};
    if (ks[3] != 1) {
      pack_rows(block.key, ks[2], ks[3], count, spec_.head_dim, packed_key);
      block.key = packed_key;
      block.key_stride = spec_.head_dim;
    }
    if (vs[3] != 1 || geometry_.pack_value) {
      block.panel_columns = kernels_.value_columns;
      block.panel_stride = count * block.panel_columns;
      pack_panels(block.value, vs[2], vs[3], count, spec_.value_head_dim, block.panel_columns, packed_value);
      block.value = packed_value;
    }
    return block;
  }

  AttentionSpec spec_;
  AttentionTileKernels kernels_;
  SoftmaxKernels rows_;
  TiledGeometry geometry_;
};

}  // namespace

std::string tiled_refusal(const AttentionSpec& spec) {
  if (spec.type != DataType::kF32) return "takes f32 only";
  // Limits are 32-bit, and up to twice the sum of both lengths is added to them.
  constexpr std::int64_t kMaxPositions = std::int64_t{1} << 29;
  const std::int64_t positions = spec.query_len + spec.key_len;
  if (positions > kMaxPositions) {
    return "query_len + key_len = " + std::to_string(positions) + ", at most " + std::to_string(kMaxPositions);
  }
  return {};
}

std::unique_ptr<const AttentionImplementation> make_tiled(const AttentionSpec& spec) {
  return std::make_unique<TiledAttention>(spec);
}

}  // namespace headway
