// The steps on one block are those of attention/tiled/query_tile.cc; rows are tokens with the heads of a group side by
// side, so that limits grow with the lanes. A lane's bits depend on its own query and keys alone: products, exps and
// sums run over keys one by one, a hidden key adds an exact 0, and blocks begin at multiples of their size.
#include "ops/cached_attention/query_tile.h"

#include <algorithm>
#include <limits>

#include "ops/base/hidden_score.h"
#include "ops/cached_attention/finish_rows.h"

namespace headway {
namespace {

/// Lanes of the widest query tile of any target.
constexpr int kMaxLanes = 64;

}  // namespace

void CachedQueryTile::FoldSpans::operator()(std::int64_t a, std::int64_t b) const {
  const CachedQueryTile& t = *tile;
  const SoftmaxState left = t.workspace_->tile_state(t.memory_, t.worker_, t.tile_, a);
  const SoftmaxState right = t.workspace_->tile_state(t.memory_, t.worker_, t.tile_, b);
  t.keys_->call.kernels.states.fold_panel({.rows = t.lanes(),
                                           .columns = *t.keys_->call.spec.value_head_dim,
                                           .maximum = left.maximum,
                                           .sum = left.sum,
                                           .live = left.live,
                                           .context = left.context,
                                           .right_maximum = right.maximum,
                                           .right_sum = right.sum,
                                           .right_live = right.live,
                                           .right_context = right.context});
}

CachedQueryTile::CachedQueryTile(const HeadKeys& keys, const TileRows& rows, const CachedWorkspace& workspace,
                                 std::byte* memory, int worker, int tile)
    : keys_(&keys),
      rows_(rows),
      workspace_(&workspace),
      memory_(memory),
      worker_(worker),
      tile_(tile),
      panels_(workspace.panels(memory, worker, tile)),
      scratch_(workspace.tile_scratch(memory, worker)),
      spans_(FoldSpans{this}) {
  find_rows(panels_);
  load_queries();
}

void CachedQueryTile::find_rows(const TilePanels& panels) {
  const CachedCall& call = keys_->call;
  std::fill_n(vector_last_, 3, 0);
  any_ = {std::numeric_limits<std::int64_t>::max(), 0};
  all_ = {0, std::numeric_limits<std::int64_t>::max()};
  KeyRange seen;
  for (std::int64_t lane = 0; lane < lanes(); ++lane) {
    // Lanes beyond the last row repeat it, as a source and as a destination: they write the same values again.
    const std::int64_t index = rows_.begin + std::min(lane, rows_.rows - 1);
    const CachedRow row = keys_->row(index);
    if (lane == 0 || index % call.geometry.sharing == 0) seen = keys_->seen(row);
    panels.query_rows[lane] = keys_->query_row(row);
    panels.out_rows[lane] = out_row(call, keys_->sequence.first_token + row.token, row.head);
    panels.first[lane] = static_cast<std::int32_t>(seen.begin);
    panels.end[lane] = static_cast<std::int32_t>(seen.end);
    // A row that sees nothing must not widen the hull.
    if (!seen.empty()) any_ = {std::min(any_.begin, seen.begin), std::max(any_.end, seen.end)};
    all_ = {std::max(all_.begin, seen.begin), std::min(all_.end, seen.end)};
    for (std::int64_t v = lane / call.geometry.lanes; v < 3; ++v) vector_last_[v] = std::max(vector_last_[v], seen.end);
  }
}

void CachedQueryTile::load_queries() {
  const CachedCall& call = keys_->call;
  const std::int64_t columns = call.spec.head_dim;
  auto load = call.spec.type == DataType::kBF16 ? call.kernels.tile.load_bf16 : call.kernels.tile.load;
  const std::byte* const* from = panels_.query_rows;
  if (call.spec.type == DataType::kF16) {
    for (std::int64_t lane = 0; lane < lanes(); ++lane) {
      float* const row = scratch_.rows + lane * columns;
      call.kernels.rows.f16.widen(panels_.query_rows[lane], row, columns);
      panels_.query_rows[lane] = reinterpret_cast<const std::byte*>(row);
    }
  }
  load({.rows = from,
        .column_stride = 1,
        .columns = columns,
        .scale = *call.spec.scale,
        .vectors = rows_.vectors,
        .panel = panels_.queries});
}

void CachedQueryTile::begin_span(std::int64_t position) {
  span_ = position;
  state_ = workspace_->tile_state(memory_, worker_, tile_, spans_.pending());
  std::fill_n(state_.maximum, lanes(), kLowestScore);
  std::fill_n(state_.sum, lanes(), 0.0f);
  std::fill_n(state_.live, lanes(), 0.0f);
  std::fill_n(panels_.bias_max, lanes(), kHiddenScore);
  has_context_ = false;
}

CachedQueryTile::TileKeys CachedQueryTile::keys_of(const CachedKeyBlock& block) const {
  TileKeys keys{};
  keys.begin = std::max(block.begin, any_.begin);
  keys.end = std::max(keys.begin, std::min(block.end, any_.end));
  // There is nothing to limit before the first key that some row does not see, unless a window begins in the block.
  keys.limited = all_.begin <= keys.begin ? std::clamp(all_.end, keys.begin, keys.end) : keys.begin;
  // Whole register tiles only.
  if (keys.limited < keys.end) keys.limited -= (keys.limited - keys.begin) % keys_->call.kernels.tile.key_tile;
  for (int v = 0; v < 3; ++v) {
    const std::int64_t last = v >= rows_.vectors - 1 ? keys.end : vector_last_[v];
    keys.vector_end[v] = std::clamp(last, keys.begin, keys.end) - keys.begin;
  }
  return keys;
}

void CachedQueryTile::score(const CachedKeyBlock& block, const TileKeys& keys, std::int64_t from, std::int64_t to,
                            float* block_max) {
  const CachedCall& call = keys_->call;
  const std::int64_t depth = call.spec.head_dim;
  // Vectors that see none of the later keys are left out of their register tiles.
  std::int64_t key = from;
  for (int v = 0; v < rows_.vectors; ++v) {
    const std::int64_t end = std::min(keys.vector_end[v], to);
    for (int r = 0; r < block.run_count && key < end; ++r) {
      const KeyRun& run = block.runs[r];
      const std::int64_t count = std::min(run.end - keys.begin, end) - key;
      if (count <= 0) continue;
      const float* const first = run.key + (keys.begin + key - run.begin) * run.stride;
      for (std::int64_t c = 0; c < depth; c += CachedGeometry::kDepthBlock) {
        const std::int64_t columns = std::min(CachedGeometry::kDepthBlock, depth - c);
        call.kernels.tile.score({.key = first + c,
                                 .key_stride = run.stride,
                                 .keys = count,
                                 .depth = columns,
                                 .queries = panels_.queries + c * lanes(),
                                 .vectors = rows_.vectors,
                                 .first_vector = v,
                                 .accumulate = c > 0,
                                 .scores = scratch_.scores + key * lanes(),
                                 .block_max = c + columns >= depth ? block_max : nullptr});
      }
      key += count;
    }
  }
}

void CachedQueryTile::load_bias(const TileKeys& keys) {
  const CachedCall& call = keys_->call;
  const std::int64_t count = keys.end - keys.begin;
  const std::byte* rows[kMaxLanes];
  const float* row = nullptr;
  for (std::int64_t lane = 0; lane < lanes(); ++lane) {
    const std::int64_t index = rows_.begin + std::min(lane, rows_.rows - 1);
    const bool repeated =
        lane > 0 && (lane >= rows_.rows || (!call.bias.per_head() && index % call.geometry.sharing != 0));
    if (!repeated) {
      float* const to = scratch_.bias_rows + lane * count;
      const CachedRow at = keys_->row(index);
      call.bias.fill(keys_->sequence, at.token, at.head, keys.begin, count, to);
      row = to;
    }
    rows[lane] = reinterpret_cast<const std::byte*>(row);
  }
  call.kernels.tile.load({.rows = rows,
                          .column_stride = 1,
                          .columns = count,
                          .scale = 1,
                          .vectors = rows_.vectors,
                          .panel = scratch_.bias});
}

void CachedQueryTile::adjust(const TileKeys& keys, std::int64_t from) {
  const CachedCall& call = keys_->call;
  const bool limits = keys.limited < keys.end;
  AdjustTile tile{.vector_end = {},
                  .vectors = rows_.vectors,
                  .softcap = call.spec.softcap,
                  .key_bias = nullptr,
                  .bias = call.bias.any() ? scratch_.bias + from * lanes() : nullptr,
                  .first = limits ? panels_.first : nullptr,
                  .end = panels_.end,
                  .key_offset = static_cast<std::int32_t>(keys.begin + from),
                  .scores = scratch_.scores + from * lanes(),
                  .block_max = scratch_.block_max,
                  .bias_max = panels_.bias_max};
  for (int v = 0; v < 3; ++v) tile.vector_end[v] = std::max<std::int64_t>(keys.vector_end[v] - from, 0);
  call.kernels.tile.adjust(tile);
}

void CachedQueryTile::add_block(const CachedKeyBlock& block) {
  const CachedCall& call = keys_->call;
  const TileKeys keys = keys_of(block);
  const std::int64_t count = keys.end - keys.begin;
  if (count <= 0) return;
  if (call.bias.any()) load_bias(keys);
  std::fill_n(scratch_.block_max, lanes(), kLowestScore);
  // Keys from `adjusted` on go through a second pass; those before it have their maximum from the register tiles.
  const std::int64_t adjusted = call.bias.any() || call.spec.softcap > 0 ? 0 : keys.limited - keys.begin;
  score(block, keys, 0, adjusted, scratch_.block_max);
  if (adjusted < count) {
    score(block, keys, adjusted, count, nullptr);
    adjust(keys, adjusted);
  }
  call.kernels.tile.softmax({.vector_end = {keys.vector_end[0], keys.vector_end[1], keys.vector_end[2]},
                             .vectors = rows_.vectors,
                             .scores = scratch_.scores,
                             .block_max = scratch_.block_max,
                             .maximum = state_.maximum,
                             .sum = state_.sum,
                             .rescale = scratch_.rescale});
  call.kernels.tile.context({.value = block.value + (keys.begin - block.begin) * block.value_stride,
                             .key_stride = block.value_stride,
                             .columns = *call.spec.value_head_dim,
                             .panel_columns = 0,
                             .panel_stride = 0,
                             .vector_end = {keys.vector_end[0], keys.vector_end[1], keys.vector_end[2]},
                             .vectors = rows_.vectors,
                             .scores = scratch_.scores,
                             .rescale = has_context_ ? scratch_.rescale : nullptr,
                             .context = state_.context});
  has_context_ = true;
}

void CachedQueryTile::end_span() {
  if (!has_context_) std::fill_n(state_.context, lanes() * *keys_->call.spec.value_head_dim, 0.0f);
  for (std::int64_t lane = 0; lane < lanes(); ++lane) {
    const bool hidden =
        keys_->call.bias.any() ? panels_.bias_max[lane] == kHiddenScore : panels_.first[lane] >= panels_.end[lane];
    state_.live[lane] = hidden ? 0.0f : 1.0f;
  }
  spans_.add(span_, spans_.pending());
}

}  // namespace headway
