// The keys of a query tile, and which of them a row sees.
#include "ops/attention/onednn/task.h"

#include <algorithm>

#include "ops/attention/epilogue/score_output.h"
#include "ops/base/hidden_score.h"

namespace headway {

OnednnTile::OnednnTile(const OnednnRun& shared, const OnednnTileRows& tile_rows, const OnednnScratch& own, int index)
    : run(shared),
      rows(tile_rows),
      scratch(own),
      worker(index),
      visibility(shared.spec, shared.args, tile_rows.batch),
      bf16(shared.spec.type == DataType::kBF16),
      range(visibility.any(rows.begin, rows.begin + rows.count)),
      always_visible{visibility.tail_begin(), visibility.tail_end()} {
  if (has_raw_scores(run.spec)) range = {0, visibility.tail_begin()};
  each_block([&](const OnednnKeyBlock& block) {
    columns += block.columns;
    ++num_blocks;
  });
}

OnednnTile::Seen OnednnTile::seen(const OnednnKeyBlock& block, const KeyRange& visible) const {
  const std::int64_t tail = std::clamp(always_visible.begin - block.key, std::int64_t{0}, block.keys);
  const std::int64_t begin = std::clamp(visible.begin - block.key, std::int64_t{0}, tail);
  return {begin, std::clamp(visible.end - block.key, begin, tail), tail};
}

bool OnednnTile::fill_bias(std::int64_t i) const {
  const KeyRange visible = visibility.row(rows.begin + i);
  bool limited = false;
  each_block([&](const OnednnKeyBlock& block) {
    float* bias = scratch.bias + block.column;
    run.bias.fill(rows.batch, rows.head, rows.begin + i, 1, block.key, block.keys, bias, block.keys);
    const Seen keys = seen(block, visible);
    std::fill(bias, bias + keys.begin, kHiddenScore);
    std::fill(bias + keys.end, bias + keys.tail, kHiddenScore);
    std::fill(bias + block.keys, bias + block.columns, kHiddenScore);
    limited = limited || !keys.all(block);
  });
  return limited || run.bias.any();
}

}  // namespace headway
