// The shapes that benchmarks and tests share, so that what is timed is also checked. Knows no implementation.
#pragma once

#include <array>
#include <cstdint>

namespace headway::perf {

/// Self-attention of one model width at several head counts: the head sweep.
struct SweepShape {
  std::int64_t batch;
  std::int64_t seq;
  std::int64_t embed_dim;
  std::int64_t num_heads;
};

inline constexpr std::int64_t kSweepEmbedDim = 1024;
inline constexpr std::int64_t kSweepSeq = 512;
inline constexpr std::array<std::int64_t, 8> kSweepHeads = {1, 2, 4, 8, 16, 32, 64, 128};

/// The attention core alone.
struct CoreShape {
  const char* name;
  std::int64_t batch;
  std::int64_t num_heads;
  std::int64_t num_kv_heads;
  std::int64_t query_len;
  std::int64_t key_len;
  std::int64_t head_dim;
  bool causal;  ///< bottom-right
  bool mask;    ///< an additive mask [Sq, Skv] that hides nothing
};

inline constexpr CoreShape kCoreShapes[] = {
    {"encoder S128 D64", 1, 12, 12, 128, 128, 64, false, false},
    {"encoder S512 D64", 1, 12, 12, 512, 512, 64, false, false},
    {"encoder S512 D64 masked", 1, 12, 12, 512, 512, 64, false, true},
    {"encoder S2048 D64", 1, 4, 4, 2048, 2048, 64, false, false},
    {"vision S197 D64", 1, 12, 12, 197, 197, 64, false, false},
    {"decoder S512 D128 causal", 1, 8, 8, 512, 512, 128, true, false},
    {"decoder S2048 D64 causal", 1, 4, 4, 2048, 2048, 64, true, false},
    {"grouped S512 past 3584 D128", 1, 32, 8, 512, 4096, 128, true, false},
    {"one token past 2047 D128", 1, 32, 32, 1, 2048, 128, false, false},
    {"one token past 4095 D128 grouped", 1, 32, 8, 1, 4096, 128, false, false},
    {"narrow S512 D32 masked", 1, 4, 4, 512, 512, 32, false, true},
    {"narrow S512 D8", 1, 128, 128, 512, 512, 8, false, false},
    {"wide S512 D1024", 1, 1, 1, 512, 512, 1024, false, false},
    {"tiny S1 D64", 1, 2, 2, 1, 1, 64, false, false},
};

/// Row lengths of the softmax: in the vector, around it, one cache level after the other.
inline constexpr std::array<std::int64_t, 6> kSoftmaxLengths = {7, 64, 197, 512, 2048, 16384};

}  // namespace headway::perf
