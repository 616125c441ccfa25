// Attention on oneDNN products in two passes: all scores of a query tile, then their softmax, then the values. Decides
// the tasks and the scratch of a worker; query_tile.cc does the rest.
#include <algorithm>
#include <set>

#include "ops/attention/epilogue/score_output.h"
#include "ops/attention/implementation.h"
#include "ops/attention/onednn/query_tile.h"
#include "ops/attention/spec.h"
#include "ops/base/workspace_layout.h"
#include "ops/matmul/onednn_bf16_check.h"
#include "ops/matmul/onednn_version.h"

namespace headway {
namespace {

/// At most 11 widths × 2 tile heights × 3 kinds of product (scores, first and later values), dense and strided.
constexpr std::size_t kMaxMatmuls = 160;

class OnednnTiles : public AttentionImplementation {
 public:
  explicit OnednnTiles(const AttentionSpec& spec);

  std::string explain() const override;
  std::size_t workspace_bytes(int workers) const override { return layout_.bytes(workers); }
  void run(const AttentionArgs& args, std::byte* workspace, const Threads& threads, Profiler* profiler) const override;

 private:
  std::set<std::int64_t> widths() const;
  std::size_t make_matmuls() const;
  OnednnScratch scratch(std::byte* workspace, int worker) const;

  AttentionSpec spec_;
  std::int64_t tiles_;
  std::int64_t granule_;
  SoftmaxKernels kernels_;
  Bf16Kernels bf16_kernels_;
  TileMatmulCache matmuls_;
  std::size_t matmul_bytes_;
  WorkspaceLayout layout_;
  WorkspaceArray<std::byte> query_, probs_, keys_, matmul_;
  WorkspaceArray<float> scores_, context_, row_, bias_;
};

OnednnTiles::OnednnTiles(const AttentionSpec& spec)
    : spec_(spec),
      tiles_(ceil_div(spec.query_len, kOnednnTileRows)),
      granule_(key_granule(spec.type)),
      kernels_(softmax_kernels()),
      bf16_kernels_(bf16_kernels()),
      matmuls_(kMaxMatmuls),
      matmul_bytes_(make_matmuls()) {
  const auto element = static_cast<std::int64_t>(size_bytes(spec.type));
  const std::int64_t columns = max_columns(spec.key_len, granule_);
  const std::int64_t width = round_up(std::max(spec.head_dim, *spec.value_head_dim), kCacheLineFloats);
  const bool own_probs = spec.type == DataType::kBF16;  // in f32 the probabilities replace the scores
  query_ = layout_.per_worker<std::byte>(element * kOnednnTileRows * spec.head_dim);
  scores_ = layout_.per_worker<float>(kOnednnTileRows * columns);
  probs_ = own_probs ? layout_.per_worker<std::byte>(element * kOnednnTileRows * columns)
                     : WorkspaceArray<std::byte>{scores_.offset_bytes};
  context_ = layout_.per_worker<float>(kOnednnTileRows * *spec.value_head_dim);
  row_ = layout_.per_worker<float>(columns);
  bias_ = layout_.per_worker<float>(columns);
  keys_ = layout_.per_worker<std::byte>(element * std::min(kOnednnBlockKeys, columns) * width);
  matmul_ = layout_.per_worker<std::byte>(static_cast<std::int64_t>(matmul_bytes_));
}

/// Widths of the products that any query tile may need.
std::set<std::int64_t> OnednnTiles::widths() const {
  std::set<std::int64_t> widths;
  // Looked for block by block where there are few enough of them; else the widths that any range of keys can ask for.
  constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 20;
  const std::int64_t blocks_per_tile = spec_.key_len / kOnednnBlockKeys + 1;
  const bool few = spec_.query_len / kOnednnTileRows < kMaxBlocks / std::min(blocks_per_tile, kMaxBlocks);
  if (few && !spec_.key_lengths && !takes_offsets(spec_)) {
    const Visibility visibility(spec_, {}, 0);
    for (std::int64_t begin = 0; begin < spec_.query_len; begin += kOnednnTileRows) {
      const KeyRange range = has_raw_scores(spec_)
                                 ? KeyRange{0, visibility.tail_begin()}
                                 : visibility.any(begin, std::min(begin + kOnednnTileRows, spec_.query_len));
      each_key_block(range, {visibility.tail_begin(), visibility.tail_end()}, granule_,
                     [&](const OnednnKeyBlock& block) { widths.insert(block.columns); });
    }
    return widths;
  }
  for (std::int64_t width = granule_; width <= kOnednnBlockStep; width += granule_) widths.insert(width);
  const std::int64_t most = std::min(kOnednnBlockKeys, spec_.key_len);
  for (std::int64_t width = kOnednnBlockStep; width <= most; width += kOnednnBlockStep) widths.insert(width);
  return widths;
}

/// Makes the products on dense operands and returns the scratch that they need at most; those on strided keys and
/// values are made by the first run that has such strides.
std::size_t OnednnTiles::make_matmuls() const {
  std::size_t most = 0;
  const std::int64_t d = spec_.head_dim;
  const std::int64_t dv = *spec_.value_head_dim;
  for (const std::int64_t rows : {std::min(kOnednnTileRows, spec_.query_len), spec_.query_len % kOnednnTileRows}) {
    if (rows == 0 || spec_.batch == 0) continue;
    for (const std::int64_t width : widths()) {
      const DataType type = spec_.type;
      const std::size_t needs[] = {matmuls_.scratch_bytes({rows, width, d, d, d, width, true, false, type}),
                                   matmuls_.scratch_bytes({rows, dv, width, width, dv, dv, false, false, type}),
                                   matmuls_.scratch_bytes({rows, dv, width, width, dv, dv, false, true, type})};
      for (const std::size_t bytes : needs) most = std::max(most, bytes);
    }
  }
  return static_cast<std::size_t>(round_up(static_cast<std::int64_t>(most), kCacheLineBytes));
}

std::string OnednnTiles::explain() const {
  return "oneDNN " + onednn_version() + " in " + type_name(spec_.type) + ", query tiles of " +
         std::to_string(kOnednnTileRows) + ", products of up to " + std::to_string(kOnednnBlockKeys) + " keys, " +
         std::to_string(workspace_bytes(1)) + " bytes per worker";
}

OnednnScratch OnednnTiles::scratch(std::byte* workspace, int worker) const {
  std::byte* const region = layout_.worker_region(workspace, worker);
  return {.query = query_.in(region),
          .scores = scores_.in(region),
          .probs = probs_.in(region),
          .context = context_.in(region),
          .row = row_.in(region),
          .bias = bias_.in(region),
          .keys = keys_.in(region),
          .matmul = matmul_.in(region),
          .matmul_bytes = matmul_bytes_};
}

void OnednnTiles::run(const AttentionArgs& args, std::byte* workspace, const Threads& threads,
                      Profiler* profiler) const {
  const BiasSource bias(spec_, args);
  const OnednnRun shared{spec_, args, bias, matmuls_, kernels_, bf16_kernels_, profiler};
  const std::int64_t in_turn = heads_in_turn(spec_);
  const std::int64_t head_groups = spec_.num_heads / in_turn;
  threads.parallel_for(spec_.batch * head_groups * tiles_, [&](std::int64_t task, int worker) {
    const OnednnScratch own = scratch(workspace, worker);
    const std::int64_t begin = task % tiles_ * kOnednnTileRows;
    const std::int64_t end = std::min(begin + kOnednnTileRows, spec_.query_len);
    const std::int64_t first_head = task / tiles_ % head_groups * in_turn;
    const std::int64_t batch = task / tiles_ / head_groups;
    if (has_mean_probs(spec_)) ScoreOutput(spec_, args).clear_mean(batch, begin, end);
    for (std::int64_t h = first_head; h < first_head + in_turn; ++h) {
      OnednnQueryTile(shared, {batch, h, begin, end - begin}, own, worker).compute();
    }
  });
}

}  // namespace

std::string onednn_tiles_why_impossible(const AttentionSpec& spec) {
  if (spec.type == DataType::kF32) return {};
  for (const std::int64_t width : {spec.head_dim, *spec.value_head_dim}) {
    if (width % onednn::kBf16DepthMultiple == 0) continue;
    return "in bf16 a head width of " + std::to_string(width) + " is not a multiple of " +
           std::to_string(onednn::kBf16DepthMultiple);
  }
  return onednn::plain_bf16_refusal();
}

std::unique_ptr<const AttentionImplementation> make_onednn_tiles(const AttentionSpec& spec) {
  return std::make_unique<OnednnTiles>(spec);
}

}  // namespace headway
