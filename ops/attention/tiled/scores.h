// The scores that a caller asked for besides the output: rows of memory, raw, biased or as probabilities.
#pragma once

#include <cstdint>

#include "ops/attention/tiled/block.h"
#include "ops/simd/softmax.h"

namespace headway {

/// Where the scores of a group go: straight to the caller's rows, or to scratch rows first when those are averaged or
/// strided. Sets tables.score_rows.
void place_scores(const TiledTask& task, float* scratch_rows, GroupRows* rows);
/// Writes what nothing else will: −inf, the score of a hidden key, in modes that have it.
void clear_scores(const TiledTask& task, const GroupRows& rows);
/// Modes kScaled and kSoftcapped, which want the scores of all Skv keys, hidden or not.
inline bool has_raw_scores(const AttentionSpec& spec) {
  return spec.scores_output == ScoresOutput::kScaled || spec.scores_output == ScoresOutput::kSoftcapped;
}
/// Writes them for one block of keys.
void raw_scores(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels, const KeyBlock& block);
/// Scores panel [keys, group] to the score rows, from key `begin` on. Nothing when there are raw scores.
void store_scores(const TiledTask& task, const GroupRows& rows, std::int64_t begin, std::int64_t keys);
/// Probabilities from biased scores and the final state; then from scratch rows to the caller's.
void finish_scores(const TiledTask& task, const SoftmaxKernels& kernels, const GroupRows& rows,
                   const GroupPanels& panels);

/// Whether lane `lane` of a finished group saw no key at all, decided on the masks.
bool is_empty_row(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels, std::int64_t lane);

}  // namespace headway
