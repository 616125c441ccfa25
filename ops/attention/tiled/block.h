// A group of queries against one block of keys, and the group's beginning and end: the order of the kernels' steps.
// Knows where nothing lies in memory but its panels; tasks and tables are tiled.cc's.
#pragma once

#include <cstdint>

#include "headway/profiler.h"
#include "ops/attention/bias.h"
#include "ops/attention/tiled/group.h"
#include "ops/simd/attention_tile.h"

namespace headway {

/// Time and work of the phases of one task, kept on the stack and reported once. Off when `on` is false.
class PhaseClock {
 public:
  enum Phase { kPack, kScores, kSoftmax, kContext, kPhases };
  explicit PhaseClock(bool on) : on_(on), begin_(on ? ticks_now() : 0), last_(begin_) {}
  /// Everything since the last call was `phase`.
  void lap(Phase phase, const Work& work) {
    if (!on_) return;
    const std::uint64_t now = ticks_now();
    ticks_[phase] += now - last_;
    last_ = now;
    work_[phase] += work;
    ++count_[phase];
  }
  bool on() const { return on_; }
  void report(Profiler* profiler, int worker) const;

 private:
  bool on_;
  std::uint64_t begin_;
  std::uint64_t last_;
  std::uint64_t ticks_[kPhases] = {};
  Work work_[kPhases];
  std::int64_t count_[kPhases] = {};
};

/// Panels of one group: state lives from block to block, the rest is scratch that groups share.
struct GroupPanels {
  float* queries;   // [D, group]
  float* context;   // [Dv, group]
  float* maximum;   // [group]
  float* sum;       // [group]
  float* bias_max;  // [group]
};
struct BlockScratch {
  float* scores;     // [key_block + 8, group]
  float* block_max;  // [group]
  float* rescale;    // [group]
  float* bias_rows;  // [group, key_block]
  float* bias;       // [key_block, group]
};

/// Keys [begin, end) of one key/value head as the kernels read them. With geometry.pairs a pair of bf16 stands for a
/// float: strides are in pairs, and rows of value are pairs of keys.
struct KeyBlock {
  std::int64_t begin;
  std::int64_t end;
  const float* key;  // row `begin`
  std::int64_t key_stride;
  const float* value;
  std::int64_t value_stride;
  std::int64_t panel_columns;  // as in ContextTile
  std::int64_t panel_stride;
  bool tail;  // the visible tail: no limits, no masks
  bool cold;  // this group is the first to read it: worth asking for ahead
};

/// What a task works with; shared by all of its groups and blocks.
struct TiledTask {
  const AttentionSpec& spec;
  const AttentionTileKernels& kernels;
  void (*pair_rows)(const PairRows&);  // of values, with geometry.pairs
  const TiledGeometry& geometry;
  const BiasSource& bias;
  const AttentionArgs& args;
  TiledUnit unit;
  BlockScratch scratch;
  PhaseClock& clock;
};

/// Loads the queries, scaled, and clears the running state.
void begin_group(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels);
/// Adds one block of keys to the running softmax and context. `first_block` tells that the context holds nothing yet;
/// returns whether it does now. With scores wanted, the biased scores also go to the score rows.
bool add_block(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels, const KeyBlock& block,
               bool first_block);
/// Normalises, writes the rows, and mends those that a hidden NaN or infinity reached.
void end_group(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels, bool any_block);

}  // namespace headway
