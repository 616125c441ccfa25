// The implementations `tiled` and `bf16_pairs`: queries on SIMD lanes, blocks of keys, a running softmax; key and value
// are read as they lie in memory. Decides tasks, workspace and which blocks of keys are visited; the steps on one block
// are tiled_block.cc's, the arithmetic is ops/simd's.
#include <algorithm>

#include "ops/attention/implementation.h"
#include "ops/attention/tiled/block.h"
#include "ops/attention/tiled/keys.h"
#include "ops/attention/tiled/scores.h"
#include "ops/matmul/onednn_bf16_check.h"
#include "ops/simd/target.h"

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

/// The kernels with those of pairs in the place of the steps that they replace.
AttentionTileKernels pair_kernels(const Bf16TileKernels& pairs) {
  AttentionTileKernels kernels = attention_tile_kernels();
  kernels.load_bf16 = pairs.load;
  kernels.score = pairs.score;
  kernels.softmax = pairs.softmax;
  kernels.context = pairs.context;
  return kernels;
}

class TiledAttention final : public AttentionImplementation {
 public:
  TiledAttention(const AttentionSpec& spec, bool pairs)
      : spec_(spec),
        bf16_(bf16_tile_kernels()),
        kernels_(pairs ? pair_kernels(bf16_) : attention_tile_kernels()),
        rows_(softmax_kernels()),
        geometry_(spec, kernels_, pairs) {}

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
        run_chunk(args, bias, {batch, h}, chunk, threads.workers(), own, clock);
      }
      clock.report(profiler, worker);
    });
  }

 private:
  // A cache line more than the buffers need, so that workers do not lie a power of two apart.
  std::int64_t worker_floats() const { return geometry_.buffers().total() + 16; }

  void run_chunk(const AttentionArgs& args, const BiasSource& bias, const TiledUnit& unit, std::int64_t chunk,
                 int workers, std::byte* workspace, PhaseClock& clock) const {
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
    const KeyScratch packed{.key = carver.take(geometry_.buffers().key),
                            .value = carver.take(geometry_.buffers().value)};
    float* const score_rows = carver.take(geometry_.buffers().score_rows);
    const TiledTask task{spec_, kernels_, bf16_.pair_rows, geometry_, bias, args, unit, scratch, clock};
    // The first chunks of a head bring its keys and values near; to the later ones of a worker they are.
    const bool cold = geometry_.fetch && !geometry_.widen && chunk < workers;

    GroupRows rows[TiledGeometry::kMaxGroupsPerChunk];
    GroupPanels panels[TiledGeometry::kMaxGroupsPerChunk];
    bool begun[TiledGeometry::kMaxGroupsPerChunk] = {};
    bool started[TiledGeometry::kMaxGroupsPerChunk] = {};
    KeyRange hull{spec_.key_len, 0};
    for (int g = 0; g < count; ++g) {
      rows[g].group = geometry_.group(first + g);
      rows[g].tables = {.query_rows = carver.take_as<const std::byte*>(wide),
                        .out_rows = carver.take_as<std::byte*>(wide),
                        .score_rows = carver.take_as<float*>(wide),
                        .first = carver.take_as<std::int32_t>(wide),
                        .end = carver.take_as<std::int32_t>(wide)};
      panels[g] = {.queries = carver.take(spec_.head_dim * wide),
                   .context = carver.take(*spec_.value_head_dim * wide),
                   .maximum = carver.take(wide),
                   .sum = carver.take(wide),
                   .bias_max = carver.take(wide)};
      place_rows(spec_, args, unit, visibility, geometry_.lanes, &rows[g]);
      hull = {std::min(hull.begin, rows[g].any.begin), std::max(hull.end, rows[g].any.end)};
      if (spec_.scores_output != ScoresOutput::kNone) {
        place_scores(task, score_rows, &rows[g]);
        clear_scores(task, rows[g]);
      }
    }

    // When its first block comes: the panel of queries is then still in the first cache.
    const auto begin_once = [&](int g) {
      if (!begun[g]) begin_group(task, rows[g], panels[g]);
      begun[g] = true;
    };
    const auto visit = [&](const KeyRange& keys, bool tail) {
      for (std::int64_t begin = keys.begin; begin < keys.end; begin += geometry_.key_block) {
        const std::int64_t end = std::min(begin + geometry_.key_block, keys.end);
        KeyBlock block = keys_and_values(task, {begin, end}, tail, packed);
        clock.lap(PhaseClock::kPack, {});
        for (int g = 0; g < count; ++g) {
          block.cold = g == 0 && cold;
          begin_once(g);
          started[g] = add_block(task, rows[g], panels[g], block, !started[g]);
        }
      }
    };
    if (has_raw_scores(spec_)) {
      for (std::int64_t begin = 0; begin < spec_.key_len; begin += geometry_.key_block) {
        const std::int64_t end = std::min(begin + geometry_.key_block, spec_.key_len);
        const KeyBlock block = keys_only(task, {begin, end}, packed);
        for (int g = 0; g < count; ++g) {
          begin_once(g);
          raw_scores(task, rows[g], panels[g], block);
        }
      }
    }
    visit(hull, false);
    visit({visibility.tail_begin(), visibility.tail_end()}, true);

    for (int g = 0; g < count; ++g) {
      begin_once(g);
      if (spec_.scores_output != ScoresOutput::kNone) finish_scores(task, rows_, rows[g], panels[g]);
      end_group(task, rows[g], panels[g], started[g]);
    }
  }

  AttentionSpec spec_;
  Bf16TileKernels bf16_;
  AttentionTileKernels kernels_;
  SoftmaxKernels rows_;
  TiledGeometry geometry_;
};

}  // namespace

std::string tiled_why_impossible(const AttentionSpec& spec) {
  // Limits are 32-bit, and up to twice the sum of both lengths is added to them.
  constexpr std::int64_t kMaxPositions = std::int64_t{1} << 29;
  const std::int64_t positions = spec.query_len + spec.key_len;
  if (positions > kMaxPositions) {
    return "query_len + key_len = " + std::to_string(positions) + ", at most " + std::to_string(kMaxPositions);
  }
  return {};
}

/// Only in bf16, where this computes in f32 and oneDNN multiplies what it is given. Times as fast as f32 here: with AMX
/// 1.1 to 2 from D·Skv = 16384 on, causal or not; with AVX512_BF16 alone half as fast on Intel (AMX switched off), and
/// on AMD bf16_pairs comes first. Rows with masks of numbers are faster here.
std::string tiled_why_not_preferred(const AttentionSpec& spec) {
  constexpr std::int64_t kLeastQueries = 64;
  constexpr std::int64_t kLeastWidth = 32;
  constexpr std::int64_t kLeastProduct = 16384;
  if (spec.type != DataType::kBF16 || !onednn::bf16_has_tiles()) return {};
  if (spec.query_len < kLeastQueries || spec.head_dim < kLeastWidth) return {};
  if (spec.head_dim * spec.key_len < kLeastProduct) return {};
  if (spec.mask != MaskKind::kNone || spec.key_mask != MaskKind::kNone || spec.softcap > 0) return {};
  if (spec.window.left >= 0 || spec.window.right >= 0 || spec.scores_output != ScoresOutput::kNone) return {};
  if (!onednn_tiles_why_impossible(spec).empty()) return {};
  return "oneDNN multiplies bf16 faster than f32 tiles do from head_dim * key_len = " + std::to_string(kLeastProduct) +
         " on";
}

std::unique_ptr<const AttentionImplementation> make_tiled(const AttentionSpec& spec) {
  return std::make_unique<TiledAttention>(spec, false);
}

std::string bf16_pairs_why_impossible(const AttentionSpec& spec) {
  if (spec.type != DataType::kBF16) return std::string("it multiplies bf16, not ") + type_name(spec.type);
  if (bf16_tile_kernels().score == nullptr) return "this CPU or SIMD target has no products of bf16 pairs";
  if (spec.head_dim % 2 != 0) return "head_dim = " + std::to_string(spec.head_dim) + " is odd";
  // What is wanted in full: weights are rounded here, and their sum is one of coarser exps.
  if (spec.scores_output != ScoresOutput::kNone) return "it gives no scores";
  return tiled_why_impossible(spec);
}

/// AMD multiplies pairs of bf16 at twice the rate of f32 (perf.md: Zen 5), Intel at half of it (measured, 44 % of f32's
/// peak against 73 % in f32).
std::string bf16_pairs_why_not_preferred(const AttentionSpec&) {
  return cpu_is_amd() ? std::string() : "products of bf16 pairs are slower than f32 on this CPU";
}

std::unique_ptr<const AttentionImplementation> make_bf16_pairs(const AttentionSpec& spec) {
  return std::make_unique<TiledAttention>(spec, true);
}

}  // namespace headway
