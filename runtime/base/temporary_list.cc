// A fixed table: a slot is free, being written by its owner, or readable by anyone. See temporary_list.h.
#include "runtime/base/temporary_list.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

#include "runtime/base/atomic_file.h"

namespace headway {
namespace {

enum State : int { kFree, kBusy, kReadable };

struct Slot {
  std::atomic<int> state{kFree};
  std::array<char, PATH_MAX> path;
};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler reads it");

constexpr int kSlots = 64;
std::array<Slot, kSlots> slots;  // 256 KiB of zero pages, touched as they are used

}  // namespace

int remember_temporary(const std::string& path) noexcept {
  if (path.size() >= PATH_MAX) return -1;
  for (int i = 0; i < kSlots; ++i) {
    Slot& slot = slots[static_cast<std::size_t>(i)];
    int expected = kFree;
    if (!slot.state.compare_exchange_strong(expected, kBusy)) continue;
    std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
    slot.state.store(kReadable);
    return i;
  }
  return -1;
}

void forget_temporary(int slot) noexcept {
  if (slot >= 0) slots[static_cast<std::size_t>(slot)].state.store(kFree);
}

void remove_temporary_files() noexcept {
  const int error = errno;
  for (Slot& slot : slots) {
    if (slot.state.load() == kReadable) ::unlink(slot.path.data());
  }
  errno = error;
}

}  // namespace headway
