// Attention on oneDNN products in two passes: all scores of a query block, then their softmax, then the values. Decides
// how work is shared out and what scratch a worker has; the block does the rest.
#include <algorithm>
#include <set>

#include "ops/attention/implementation.h"
#include "ops/attention/onednn/block.h"
#include "ops/attention/onednn/workspace.h"
#include "ops/attention/spec.h"
#include "ops/matmul/onednn_bf16_check.h"

namespace headway {
namespace {

/// At most 11 widths × 2 block heights × 3 kinds of product (scores, first and later values), dense and strided.
constexpr std::size_t kMaxMatmuls = 160;

std::int64_t round_up_to_line(std::int64_t floats) { return (floats + 15) / 16 * 16; }

class OnednnTiles : public AttentionImplementation {
 public:
  explicit OnednnTiles(const AttentionSpec& spec);

  std::string explain() const override;
  std::size_t workspace_bytes(int workers) const override {
    return static_cast<std::size_t>(workers) * (sizeof(float) * static_cast<std::size_t>(floats()) + matmul_bytes_);
  }
  void run(const AttentionArgs& args, std::byte* workspace, const Threads& threads, Profiler* profiler) const override;

 private:
  std::int64_t floats() const {
    return query_floats_ + scores_floats_ + weights_floats_ + context_floats_ + 2 * row_floats_ + keys_floats_;
  }
  std::set<std::int64_t> widths() const;
  void make_matmuls();
  OnednnBlockScratch scratch(std::byte* workspace, int worker) const;
  void clear_scores(const AttentionArgs& args, std::int64_t batch, std::int64_t begin, std::int64_t end) const;

  AttentionSpec spec_;
  std::int64_t blocks_;
  std::int64_t granule_;
  std::int64_t query_floats_, scores_floats_, weights_floats_, context_floats_, row_floats_, keys_floats_;
  std::size_t matmul_bytes_ = 0;
  SoftmaxKernels kernels_;
  Bf16Kernels bf16_kernels_;
  TileMatmulCache matmuls_;
};

OnednnTiles::OnednnTiles(const AttentionSpec& spec)
    : spec_(spec),
      blocks_((spec.query_len + kBlockRows - 1) / kBlockRows),
      granule_(piece_granule(spec.type)),
      query_floats_(round_up_to_line(kBlockRows * spec.head_dim)),
      scores_floats_(kBlockRows * most_columns(spec.key_len, granule_)),
      weights_floats_(spec.type == DataType::kBF16 ? scores_floats_ / 2 : 0),
      context_floats_(round_up_to_line(kBlockRows * spec.value_head_dim)),
      row_floats_(most_columns(spec.key_len, granule_)),
      keys_floats_(std::min(kPieceKeys, most_columns(spec.key_len, granule_)) *
                   round_up_to_line(std::max(spec.head_dim, spec.value_head_dim))),
      kernels_(softmax_kernels()),
      bf16_kernels_(bf16_kernels()),
      matmuls_(kMaxMatmuls) {
  make_matmuls();
}

/// Widths of the products that any block can ask for.
std::set<std::int64_t> OnednnTiles::widths() const {
  std::set<std::int64_t> widths;
  // Looked for block by block where there are few enough of them; else the widths that any range of keys can ask for.
  constexpr std::int64_t kMaxPieces = std::int64_t{1} << 20;
  const std::int64_t pieces_per_block = spec_.key_len / kPieceKeys + 1;
  const bool few = spec_.query_len / kBlockRows < kMaxPieces / std::min(pieces_per_block, kMaxPieces);
  if (few && !spec_.key_lengths && !takes_offsets(spec_)) {
    const Visibility visibility(spec_, {}, 0);
    const bool all = spec_.scores_output == ScoresOutput::kScaled || spec_.scores_output == ScoresOutput::kSoftcapped;
    for (std::int64_t begin = 0; begin < spec_.query_len; begin += kBlockRows) {
      const KeyRange range = all ? KeyRange{0, visibility.tail_begin()}
                                 : visibility.any(begin, std::min(begin + kBlockRows, spec_.query_len));
      each_piece(range, {visibility.tail_begin(), visibility.tail_end()}, granule_,
                 [&](const KeyPiece& piece) { widths.insert(piece.columns); });
    }
    return widths;
  }
  for (std::int64_t width = granule_; width <= 64; width += granule_) widths.insert(width);
  for (std::int64_t width = 64; width <= std::min(kPieceKeys, spec_.key_len); width += 64) widths.insert(width);
  return widths;
}

/// Makes the products on dense operands ahead; those on strided keys and values are made at the first run that brings
/// such strides.
void OnednnTiles::make_matmuls() {
  const std::int64_t d = spec_.head_dim;
  const std::int64_t dv = spec_.value_head_dim;
  for (const std::int64_t rows : {std::min(kBlockRows, spec_.query_len), spec_.query_len % kBlockRows}) {
    if (rows == 0 || spec_.batch == 0) continue;
    for (const std::int64_t width : widths()) {
      const DataType type = spec_.type;
      const std::size_t needs[] = {matmuls_.scratch_bytes({rows, width, d, d, d, width, true, false, type}),
                                   matmuls_.scratch_bytes({rows, dv, width, width, dv, dv, false, false, type}),
                                   matmuls_.scratch_bytes({rows, dv, width, width, dv, dv, false, true, type})};
      for (const std::size_t bytes : needs) matmul_bytes_ = std::max(matmul_bytes_, (bytes + 63) / 64 * 64);
    }
  }
}

std::string OnednnTiles::explain() const {
  return "oneDNN " + onednn_version() + " in " + type_name(spec_.type) + ", query blocks of " +
         std::to_string(kBlockRows) + ", products of up to " + std::to_string(kPieceKeys) + " keys, " +
         std::to_string(workspace_bytes(1)) + " bytes a worker";
}

OnednnBlockScratch OnednnTiles::scratch(std::byte* workspace, int worker) const {
  std::byte* begin = workspace + static_cast<std::size_t>(worker) * workspace_bytes(1);
  auto* next = reinterpret_cast<float*>(begin);
  const auto take = [&next](std::int64_t count) {
    float* taken = next;
    next += count;
    return taken;
  };
  OnednnBlockScratch at{};
  at.query = reinterpret_cast<std::byte*>(take(query_floats_));
  at.scores = take(scores_floats_);
  // In f32 the weights take the place of the scores.
  at.weights = reinterpret_cast<std::byte*>(weights_floats_ > 0 ? take(weights_floats_) : at.scores);
  at.context = take(context_floats_);
  at.row = take(row_floats_);
  at.bias = take(row_floats_);
  at.keys = reinterpret_cast<std::byte*>(take(keys_floats_));
  at.matmul = reinterpret_cast<std::byte*>(next);
  at.matmul_bytes = matmul_bytes_;
  return at;
}

void OnednnTiles::clear_scores(const AttentionArgs& args, std::int64_t batch, std::int64_t begin,
                               std::int64_t end) const {
  const Dims& strides = args.scores.strides;
  for (std::int64_t i = begin; i < end; ++i) {
    float* row = args.scores.as<float>() + batch * strides[0] + i * strides[1];
    for (std::int64_t j = 0; j < spec_.key_len; ++j) row[j * strides[2]] = 0;
  }
}

void OnednnTiles::run(const AttentionArgs& args, std::byte* workspace, const Threads& threads,
                      Profiler* profiler) const {
  const BiasSource bias(spec_, args);
  const OnednnRun shared{spec_, args, bias, matmuls_, kernels_, bf16_kernels_, profiler};
  // Heads are averaged by one task in turn: the order of the sum must not depend on the threads.
  const bool mean = spec_.scores_output == ScoresOutput::kMeanProbabilities;
  const std::int64_t heads_per_task = mean ? spec_.num_heads : 1;
  const std::int64_t groups = mean ? 1 : spec_.num_heads;
  threads.parallel_for(spec_.batch * groups * blocks_, [&](std::int64_t task, int worker) {
    const OnednnBlockScratch at = scratch(workspace, worker);
    const std::int64_t begin = task % blocks_ * kBlockRows;
    const std::int64_t end = std::min(begin + kBlockRows, spec_.query_len);
    const std::int64_t first_head = task / blocks_ % groups * heads_per_task;
    const std::int64_t batch = task / blocks_ / groups;
    if (mean) clear_scores(args, batch, begin, end);
    for (std::int64_t h = first_head; h < first_head + heads_per_task; ++h) {
      OnednnBlock(shared, {batch, h, begin, end - begin}, at, worker).compute();
    }
  });
}

}  // namespace

std::string onednn_tiles_why_impossible(const AttentionSpec& spec) {
  if (spec.type == DataType::kF32) return {};
  for (const std::int64_t width : {spec.head_dim, spec.value_head_dim}) {
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
