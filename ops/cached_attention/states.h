// Softmax states: of rows in the shared workspace, where the keys of a sequence are split, and of a tile's lanes while
// its spans are folded. Decides the tree in which they are added up; the arithmetic is ops/simd/softmax_state.h's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/simd/softmax_state.h"

namespace headway {

/// One row, or `rows` lanes of a tile.
struct SoftmaxState {
  float* maximum = nullptr;  // [rows]
  float* sum = nullptr;      // [rows]
  float* live = nullptr;     // [rows]: 1 once a key was not hidden, else 0
  float* context = nullptr;  // [rows, Dv], of a tile [Dv, rows]
};

/// Adds up states that come in the order of their absolute positions, pair by pair as a binary tree over these
/// positions has them: a state depends on which positions it covers and not on which tasks computed them. Missing
/// positions count as states without keys, which change no bit.
template <class Fold>
class StateTree {
 public:
  static constexpr int kLevels = 40;
  /// fold(a, b): state a becomes that of both. States have the indices given to add().
  explicit StateTree(Fold fold) : fold_(fold) { std::fill_n(pending_, kLevels, -1); }

  /// States that wait for their partners.
  std::int64_t pending() const { return count_; }

  /// `state` is that of `position`, which is one after the last. As states wait in the order in which they came, the
  /// one that waits last is folded first.
  void add(std::int64_t position, std::int64_t state) {
    int level = 0;
    for (; (position >> level & 1) != 0; ++level) {
      if (pending_[level] < 0) continue;
      fold_(pending_[level], state);
      state = pending_[level];
      pending_[level] = -1;
      --count_;
    }
    pending_[level] = state;
    ++count_;
  }
  /// The state of everything, or −1.
  std::int64_t finish() {
    std::int64_t result = -1;
    for (std::int64_t& pending : pending_) {
      if (pending < 0) continue;
      if (result >= 0) fold_(pending, result);
      result = pending;
    }
    return result;
  }

 private:
  Fold fold_;
  std::int64_t pending_[kLevels];  // by level; −1: none
  std::int64_t count_ = 0;
};

}  // namespace headway
