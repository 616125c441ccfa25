// One group of query rows at run time: where each lane's rows lie and which keys it may see. Knows no arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headway/attention.h"
#include "ops/attention/tiled/geometry.h"
#include "ops/attention/visibility.h"

namespace headway {

/// Lanes beyond the last row repeat it, as a source and as a destination: they write the same values again.
struct GroupTables {
  const std::byte** query_rows;  // [group], of the spec's type
  std::byte** out_rows;          // [group], of the spec's type
  float** score_rows;            // [group]; null beyond the last row
  std::int32_t* first;           // [group]: lane sees keys [first, end), besides the visible tail
  std::int32_t* end;             // [group]
};

/// The unit that a group's rows belong to.
struct TiledUnit {
  std::int64_t batch;
  std::int64_t head;  // the first query head of the unit
};

struct GroupRows {
  QueryGroup group;
  GroupTables tables;
  KeyRange any;                 // hull of what the lanes see, without the tail
  KeyRange all;                 // what every lane sees
  std::int32_t vector_last[3];  // largest end of the lanes of a vector, made non-decreasing
};

/// Query index and head of row `row` of a unit.
struct RowPlace {
  std::int64_t head;
  std::int64_t query;
};
inline RowPlace place_of(const TiledUnit& unit, std::int64_t query_len, std::int64_t row) {
  return {unit.head + row / query_len, row % query_len};
}

/// Fills tables and ranges of `rows` (whose group and tables are set).
void place_rows(const AttentionSpec& spec, const AttentionArgs& args, const TiledUnit& unit,
                const Visibility& visibility, int lanes, GroupRows* rows);

}  // namespace headway
