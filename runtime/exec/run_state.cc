// The pool of run states.
#include "runtime/exec/run_state.h"

#include <algorithm>

namespace headway {

std::unique_ptr<RunState> RunStatePool::take(int workers) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  // Last in, first out: its memory is the warmest. A state for as many workers is better still, since the workspace of
  // another may have to grow.
  auto at = std::find_if(free_.rbegin(), free_.rend(), [&](const auto& state) { return state->workers == workers; });
  if (at == free_.rend()) at = free_.rbegin();
  std::swap(*at, free_.back());
  std::unique_ptr<RunState> state = std::move(free_.back());
  free_.pop_back();
  return state;
}

void RunStatePool::announce_new() {
  const std::lock_guard lock(mutex_);
  free_.reserve(made_ + 1);
  ++made_;
}

void RunStatePool::give_back(std::unique_ptr<RunState> state) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(state));  // announce_new() made the room
}

}  // namespace headway
