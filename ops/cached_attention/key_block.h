// A block of keys and values as the register tiles read them: in place where rows are f32 and follow one another, else
// gathered into scratch once for all query tiles of a task. Knows neither query tiles nor arithmetic.
#pragma once

#include <cstdint>

#include "ops/cached_attention/call.h"
#include "ops/cached_attention/workspace.h"

namespace headway {

/// Keys [begin, end), counted in positions, at constant distance.
struct KeyRun {
  std::int64_t begin;
  std::int64_t end;
  const float* key;  // of `begin`
  std::int64_t stride;
};

/// Shorter runs in memory are gathered: a register tile takes up to 8 keys and repeats the last one.
inline constexpr std::int64_t kMinRunKeys = 16;
inline constexpr int kMaxRuns = CachedGeometry::kKeyBlock / kMinRunKeys + 3;

struct CachedKeyBlock {
  std::int64_t begin;
  std::int64_t end;
  KeyRun runs[kMaxRuns];
  int run_count;
  const float* value;  // of `begin`
  std::int64_t value_stride;
};

/// Keys `range` of `keys`, which are one block at most.
void read_key_block(const HeadKeys& keys, const KeyRange& range, const TileScratch& scratch, CachedKeyBlock* block);

}  // namespace headway
