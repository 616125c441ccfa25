// Fills the lane tables of a group.
#include "ops/attention/tiled_group.h"

#include <algorithm>

namespace headway {

void place_rows(const AttentionSpec& spec, const AttentionArgs& args, const TiledUnit& unit,
                const Visibility& visibility, int lanes, GroupRows* rows) {
  const QueryGroup& group = rows->group;
  const GroupTables& tables = rows->tables;
  const auto* query = args.query.as<float>() + unit.batch * args.query.strides[0];
  auto* out = args.out.as<float>() + unit.batch * args.out.strides[0];
  const std::int64_t width = static_cast<std::int64_t>(group.vectors) * lanes;
  rows->any = {spec.key_len, 0};
  rows->all = {0, spec.key_len};
  for (int v = 0; v < 3; ++v) rows->vector_last[v] = 0;

  RowPlace place = place_of(unit, spec.query_len, group.begin);
  for (std::int64_t lane = 0; lane < width; ++lane) {
    tables.query_rows[lane] = query + place.head * args.query.strides[1] + place.query * args.query.strides[2];
    tables.out_rows[lane] = nullptr;
    const KeyRange seen = visibility.row(place.query);
    tables.first[lane] = static_cast<std::int32_t>(seen.begin);
    tables.end[lane] = static_cast<std::int32_t>(std::max(seen.begin, seen.end));
    if (lane < group.rows) {
      tables.out_rows[lane] = out + place.head * args.out.strides[1] + place.query * args.out.strides[2];
      if (!seen.empty()) {
        rows->any.begin = std::min(rows->any.begin, seen.begin);
        rows->any.end = std::max(rows->any.end, seen.end);
      }
      rows->all.begin = std::max(rows->all.begin, seen.begin);
      rows->all.end = std::min(rows->all.end, seen.end);
      std::int32_t& last = rows->vector_last[lane / lanes];
      last = std::max(last, tables.end[lane]);
    }
    if (lane + 1 < group.rows && ++place.query == spec.query_len) place = {place.head + 1, 0};
  }
  for (int v = 1; v < 3; ++v) rows->vector_last[v] = std::max(rows->vector_last[v], rows->vector_last[v - 1]);
}

}  // namespace headway
