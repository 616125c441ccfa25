// Fills the lane tables of a group, one head's run of queries after the other.
#include "ops/attention/tiled/group.h"

#include <algorithm>
#include <limits>

namespace headway {
namespace {

/// Lanes [lane, lane + count) are queries place.query … of place.head.
struct Run {
  std::int64_t lane;
  std::int64_t count;
  RowPlace place;
};

void place_run(const AttentionArgs& args, std::int64_t batch, const Visibility& visibility, const Run& run,
               const GroupTables& tables) {
  const Dims& qs = args.query.strides;
  const Dims& os = args.out.strides;
  const auto bytes = static_cast<std::int64_t>(size_bytes(args.query.type));
  const std::byte* query = args.query.data + bytes * (batch * qs[0] + run.place.head * qs[1] + run.place.query * qs[2]);
  std::byte* out = args.out.data + bytes * (batch * os[0] + run.place.head * os[1] + run.place.query * os[2]);
  for (std::int64_t i = 0; i < run.count; ++i) {
    tables.query_rows[run.lane + i] = query + bytes * i * qs[2];
    tables.out_rows[run.lane + i] = out + bytes * i * os[2];
  }
  // 32-bit arithmetic in a loop of its own, so that the compiler can vectorise it. Bounds are clamped to ±(Sq + Skv).
  const auto first = static_cast<std::int32_t>(visibility.first() + run.place.query);
  const auto end = static_cast<std::int32_t>(visibility.last() + run.place.query + 1);
  const auto limit = static_cast<std::int32_t>(visibility.limit());
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(run.count); ++i) {
    const std::int32_t begin = std::clamp(first + i, 0, limit);
    tables.first[run.lane + i] = begin;
    tables.end[run.lane + i] = std::max(begin, std::clamp(end + i, 0, limit));
  }
}

/// Ranges of the lanes [0, rows) from their limits.
void bound(int lanes, GroupRows* rows) {
  std::int32_t any_begin = std::numeric_limits<std::int32_t>::max(), any_end = 0;
  std::int32_t all_begin = 0, all_end = std::numeric_limits<std::int32_t>::max();
  for (int v = 0; v < 3; ++v) {
    std::int32_t last = v > 0 ? rows->vector_last[v - 1] : 0;
    const std::int64_t end = std::min<std::int64_t>((v + 1) * lanes, rows->group.rows);
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

void place_rows(const AttentionSpec& spec, const AttentionArgs& args, const TiledUnit& unit,
                const Visibility& visibility, int lanes, GroupRows* rows) {
  const QueryGroup& group = rows->group;
  const GroupTables& tables = rows->tables;
  for (std::int64_t lane = 0; lane < group.rows;) {
    const RowPlace place = place_of(unit, spec.query_len, group.begin + lane);
    const Run run{lane, std::min(group.rows - lane, spec.query_len - place.query), place};
    place_run(args, unit.batch, visibility, run, tables);
    lane += run.count;
  }
  const std::int64_t last = group.rows - 1;
  for (std::int64_t lane = group.rows; lane < static_cast<std::int64_t>(group.vectors) * lanes; ++lane) {
    tables.query_rows[lane] = tables.query_rows[last];
    tables.out_rows[lane] = tables.out_rows[last];
    tables.first[lane] = tables.first[last];
    tables.end[lane] = tables.end[last];
  }
  bound(lanes, rows);
}

}  // namespace headway
