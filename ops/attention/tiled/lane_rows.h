// The rows of a query tile at run time: where each lane's rows lie in memory and which keys it may see. Knows no
// arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headway/attention.h"
#include "ops/attention/tiled/geometry.h"
#include "ops/attention/tiled/task.h"
#include "ops/attention/visibility.h"

namespace headway {

/// Lanes beyond the last row repeat it, as a source and as a destination: they write the same values again.
struct LaneTables {
  const std::byte** query_rows;  // [tile_lanes], of the spec's type
  std::byte** out_rows;          // [tile_lanes], of the spec's type
  float** score_rows;            // [tile_lanes]; null beyond the last row
  std::int32_t* first;           // [tile_lanes]: lane sees keys [first, end), besides the always visible ones
  std::int32_t* end;             // [tile_lanes]
};

struct LaneRows {
  QueryTileRows tile;
  LaneTables tables;
  KeyRange any;                 // hull of what the lanes see, without the always visible keys
  KeyRange all;                 // what every lane sees
  std::int32_t vector_last[3];  // largest end of the lanes of a vector, made non-decreasing
};

/// Fills tables and ranges of `rows`, whose `tile` and `tables` are set.
void fill_lane_rows(const TiledTask& task, const Visibility& visibility, LaneRows* rows);

}  // namespace headway
