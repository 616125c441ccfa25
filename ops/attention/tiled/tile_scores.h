// The scores of a query tile that the caller asked for besides the output. They are collected in rows of floats, the
// caller's own where those are dense. Knows no kernels but the score kernel.
#pragma once

#include <cstdint>

#include "ops/attention/tiled/query_tile.h"
#include "ops/simd/softmax.h"

namespace headway {

/// Sets the score rows of a tile: the caller's, or rows of `scratch_rows` [tile_lanes, Skv] where those are strided or
/// averaged; and fills them with −inf, the score of a hidden key, in modes that have it.
void begin_scores(float* scratch_rows, QueryTile* tile);
/// In modes of raw scores: those of all keys of a block.
void store_raw_scores(const QueryTile& tile, const KeyBlock& block);
/// In the other modes: the scores panel [keys, tile_lanes] to the score rows, from key `begin` on.
void store_biased_scores(const QueryTile& tile, std::int64_t begin, std::int64_t keys);
/// Probabilities from biased scores and the final state; then from scratch rows to the caller's.
void finish_scores(const QueryTile& tile, const SoftmaxKernels& kernels);

}  // namespace headway
