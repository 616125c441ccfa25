// Fills the lane tables one head after the other: rows of one head are a stride apart.
#include "ops/attention/tiled/lane_rows.h"

#include <algorithm>
#include <limits>

namespace headway {
namespace {

/// Lanes [lane, lane + count) are queries first.query … of first.head.
struct HeadLanes {
  std::int64_t lane;
  std::int64_t count;
  QueryRow first;
};

void fill_head(const AttentionArgs& args, std::int64_t batch, const Visibility& visibility, const HeadLanes& lanes,
               const LaneTables& tables) {
  const Dims& qs = args.query.strides;
  const Dims& os = args.out.strides;
  const auto bytes = static_cast<std::int64_t>(size_bytes(args.query.type));
  const std::byte* query =
      args.query.data + bytes * (batch * qs[0] + lanes.first.head * qs[1] + lanes.first.query * qs[2]);
  std::byte* out = args.out.data + bytes * (batch * os[0] + lanes.first.head * os[1] + lanes.first.query * os[2]);
  for (std::int64_t i = 0; i < lanes.count; ++i) {
    tables.query_rows[lanes.lane + i] = query + bytes * i * qs[2];
    tables.out_rows[lanes.lane + i] = out + bytes * i * os[2];
  }
  // 32-bit arithmetic in a loop of its own, so that the compiler can vectorise it. Bounds are clamped to ±(Sq + Skv).
  const auto first = static_cast<std::int32_t>(visibility.first() + lanes.first.query);
  const auto end = static_cast<std::int32_t>(visibility.last() + lanes.first.query + 1);
  const auto limit = static_cast<std::int32_t>(visibility.limit());
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(lanes.count); ++i) {
    const std::int32_t begin = std::clamp(first + i, 0, limit);
    tables.first[lanes.lane + i] = begin;
    tables.end[lanes.lane + i] = std::max(begin, std::clamp(end + i, 0, limit));
  }
}

/// Key ranges of all lanes and of each vector from the limits of the lanes.
void set_ranges(int lanes, LaneRows* rows) {
  std::int32_t any_begin = std::numeric_limits<std::int32_t>::max(), any_end = 0;
  std::int32_t all_begin = 0, all_end = std::numeric_limits<std::int32_t>::max();
  for (int v = 0; v < 3; ++v) {
    std::int32_t last = v > 0 ? rows->vector_last[v - 1] : 0;
    const std::int64_t end = std::min<std::int64_t>((v + 1) * lanes, rows->tile.rows);
    for (std::int64_t lane = v * lanes; lane < end; ++lane) {
      const std::int32_t first = rows->tables.first[lane];
      const std::int32_t stop = rows->tables.end[lane];
      last = std::max(last, stop);
      // A lane that sees nothing has first == end and must not widen the hull.
      any_begin = std::min(any_begin, first < stop ? first : std::numeric_limits<std::int32_t>::max());
      any_end = std::max(any_end, first < stop ? stop : 0);
      all_begin = std::max(all_begin, first);
      all_end = std::min(all_end, stop);
    }
    rows->vector_last[v] = last;
  }
  rows->any = {any_begin, any_end};
  rows->all = {all_begin, all_end};
}

}  // namespace

void fill_lane_rows(const TiledTask& task, const Visibility& visibility, LaneRows* rows) {
  const QueryTileRows& tile = rows->tile;
  const LaneTables& tables = rows->tables;
  const std::int64_t query_len = task.spec.query_len;
  for (std::int64_t lane = 0; lane < tile.rows;) {
    const QueryRow first = task.heads.row(tile.begin + lane, query_len);
    const HeadLanes lanes{lane, std::min(tile.rows - lane, query_len - first.query), first};
    fill_head(task.args, task.heads.batch, visibility, lanes, tables);
    lane += lanes.count;
  }
  const std::int64_t last = tile.rows - 1;
  for (std::int64_t lane = tile.rows; lane < static_cast<std::int64_t>(tile.vectors) * task.geometry.lanes; ++lane) {
    tables.query_rows[lane] = tables.query_rows[last];
    tables.out_rows[lane] = tables.out_rows[last];
    tables.first[lane] = tables.first[last];
    tables.end[lane] = tables.end[last];
  }
  set_ranges(task.geometry.lanes, rows);
}

}  // namespace headway
