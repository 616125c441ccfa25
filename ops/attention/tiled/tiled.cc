// The implementations `tiled` and `bf16_pairs`: queries on SIMD lanes, blocks of keys, a running softmax; key and value
// are read in place. Decides the tasks and which key blocks are visited; the steps on one block are query_tile.cc's,
// the arithmetic is ops/simd's. The engine's words are defined in task.h.
#include <algorithm>

#include "ops/attention/epilogue/score_output.h"
#include "ops/attention/implementation.h"
#include "ops/attention/tiled/key_block.h"
#include "ops/attention/tiled/query_tile.h"
#include "ops/attention/tiled/tile_scores.h"
#include "ops/attention/tiled/workspace.h"
#include "ops/matmul/onednn_bf16_check.h"
#include "ops/simd/target.h"

namespace headway {
namespace {

/// The f32 kernels, with those of bf16 pairs where there are any.
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
        softmax_(softmax_kernels()),
        geometry_(spec, kernels_, pairs),
        workspace_(spec, kernels_, geometry_) {}

  std::string explain() const override { return geometry_.explain(kernels_, workspace_.layout().worker_bytes()); }
  std::size_t workspace_bytes(int workers) const override { return workspace_.layout().bytes(workers); }

  void run(const AttentionArgs& args, std::byte* workspace, const Threads& threads, Profiler* profiler) const override {
    const BiasSource bias(spec_, args);
    const std::int64_t in_turn = heads_in_turn(spec_);
    const std::int64_t head_groups = spec_.num_heads / std::max(in_turn, geometry_.heads_per_group);
    threads.parallel_for(spec_.batch * head_groups * geometry_.tasks, [&](std::int64_t index, int worker) {
      PhaseClock clock(profiler != nullptr);
      std::byte* const region = workspace_.layout().worker_region(workspace, worker);
      const std::int64_t task = index % geometry_.tasks;
      const std::int64_t batch = index / geometry_.tasks / head_groups;
      const std::int64_t head = index / geometry_.tasks % head_groups * geometry_.heads_per_group;
      for (std::int64_t h = head; h < head + in_turn; ++h) {
        run_task(args, bias, {batch, h}, task, threads.workers(), region, clock);
      }
      clock.report(profiler, worker);
    });
  }

 private:
  void run_task(const AttentionArgs& args, const BiasSource& bias, const HeadGroup& heads, std::int64_t index,
                int workers, std::byte* region, PhaseClock& clock) const {
    const Visibility visibility(spec_, args, heads.batch);
    const std::int64_t first = index * geometry_.tiles_per_task;
    const int count = static_cast<int>(std::min(geometry_.tiles_per_task, geometry_.tiles - first));
    const TiledTask task{
        spec_, kernels_, bf16_.pair_rows, geometry_, bias, args, heads, workspace_.block_scratch(region), clock};
    // Prefetch K and V only in a worker's first task of a head group; later tasks find them in cache.
    const bool cold = geometry_.prefetch && !geometry_.widen && index < workers;

    QueryTile tiles[TiledGeometry::kMaxTilesPerTask];
    KeyRange hull{spec_.key_len, 0};
    for (int t = 0; t < count; ++t) {
      tiles[t] = QueryTile(task, geometry_.tile(first + t), workspace_.lane_tables(region, t),
                           workspace_.panels(region, t), visibility);
      const KeyRange& any = tiles[t].rows().any;
      hull = {std::min(hull.begin, any.begin), std::max(hull.end, any.end)};
      if (spec_.scores_output != ScoresOutput::kNone) begin_scores(workspace_.score_rows(region), &tiles[t]);
    }
    const auto each_block = [&](const KeyRange& keys, auto visit) {
      for (std::int64_t begin = keys.begin; begin < keys.end; begin += geometry_.key_block) {
        visit(KeyRange{begin, std::min(begin + geometry_.key_block, keys.end)});
      }
    };
    const auto add_blocks = [&](const KeyRange& keys, bool always_visible) {
      each_block(keys, [&](const KeyRange& range) {
        KeyBlock block = read_keys_and_values(task, range, always_visible);
        clock.lap(PhaseClock::kPack, {});
        for (int t = 0; t < count; ++t) {
          block.cold = t == 0 && cold;
          tiles[t].add_block(block);
        }
      });
    };
    if (has_raw_scores(spec_)) {
      each_block({0, spec_.key_len}, [&](const KeyRange& range) {
        const KeyBlock block = read_keys_only(task, range);
        for (int t = 0; t < count; ++t) {
          tiles[t].begin();
          store_raw_scores(tiles[t], block);
        }
      });
    }
    add_blocks(hull, false);
    add_blocks({visibility.tail_begin(), visibility.tail_end()}, true);
    for (int t = 0; t < count; ++t) {
      tiles[t].begin();
      if (spec_.scores_output != ScoresOutput::kNone) finish_scores(tiles[t], softmax_);
      if (args.log_sum_exp) tiles[t].write_log_sum_exps(softmax_);
      tiles[t].finish();
    }
  }

  AttentionSpec spec_;
  Bf16TileKernels bf16_;
  AttentionTileKernels kernels_;
  SoftmaxKernels softmax_;
  TiledGeometry geometry_;
  TiledWorkspace workspace_;
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

/// Only in bf16: this engine widens to f32, while oneDNN multiplies bf16. Speed of oneDNN over this engine: with
/// AMX 1.1 to 2 from D·Skv = 16384 on, causal or not; with AVX512_BF16 alone 0.5 on Intel (AMX switched off); on AMD
/// bf16_pairs comes first. With user masks, softcap or windows this engine is faster.
std::string tiled_why_not_preferred(const AttentionSpec& spec) {
  constexpr std::int64_t kMinQueries = 64;
  constexpr std::int64_t kMinWidth = 32;
  constexpr std::int64_t kMinProduct = 16384;
  if (spec.type != DataType::kBF16 || !onednn::bf16_has_tiles()) return {};
  if (spec.query_len < kMinQueries || spec.head_dim < kMinWidth) return {};
  if (spec.head_dim * spec.key_len < kMinProduct) return {};
  if (spec.mask != MaskKind::kNone || spec.key_mask != MaskKind::kNone || spec.softcap > 0) return {};
  if (spec.window.left >= 0 || spec.window.right >= 0 || spec.scores_output != ScoresOutput::kNone) return {};
  if (!onednn_tiles_why_impossible(spec).empty()) return {};
  return "oneDNN multiplies bf16 faster than f32 tiles do from head_dim * key_len = " + std::to_string(kMinProduct) +
         " on";
}

std::unique_ptr<const AttentionImplementation> make_tiled(const AttentionSpec& spec) {
  return std::make_unique<TiledAttention>(spec, false);
}

std::string bf16_pairs_why_impossible(const AttentionSpec& spec) {
  if (spec.type != DataType::kBF16) return std::string("it multiplies bf16, not ") + type_name(spec.type);
  if (bf16_tile_kernels().score == nullptr) return "this CPU or SIMD target has no products of bf16 pairs";
  if (spec.head_dim % 2 != 0) return "head_dim = " + std::to_string(spec.head_dim) + " is odd";
  // This path rounds the probabilities to bf16 and normalises by a less accurate sum.
  if (spec.scores_output != ScoresOutput::kNone) return "it gives no scores";
  return tiled_why_impossible(spec);
}

/// AMD multiplies pairs of bf16 at twice the rate of f32 (Zen 5), Intel at half of it (measured, 44 % of f32's
/// peak against 73 % in f32).
std::string bf16_pairs_why_not_preferred(const AttentionSpec&) {
  return cpu_is_amd() ? std::string() : "products of bf16 pairs are slower than f32 on this CPU";
}

std::unique_ptr<const AttentionImplementation> make_bf16_pairs(const AttentionSpec& spec) {
  return std::make_unique<TiledAttention>(spec, true);
}

}  // namespace headway
