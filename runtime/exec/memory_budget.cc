// See memory_budget.h.
#include "runtime/exec/memory_budget.h"

#include "runtime/base/check.h"
#include "runtime/base/machine_memory.h"
#include "runtime/base/text_stream.h"

namespace headway {
MemoryBudget::MemoryBudget(std::optional<std::size_t> limit_bytes)
    : limit_(limit_bytes ? *limit_bytes : default_memory_limit_bytes()) {}

bool MemoryBudget::fits(std::size_t bytes) const {
  const std::size_t used = used_bytes();
  return used <= limit_ && bytes <= limit_ - used;
}

void MemoryBudget::check(std::span<const MemoryNeed> needs) const {
  std::size_t sum = 0;
  for (const MemoryNeed& need : needs) sum = saturating_sum(sum, need.bytes);
  if (fits(sum)) return;
  TextStream list;
  const char* separator = "";
  for (const MemoryNeed& need : needs) {
    if (need.bytes == 0) continue;
    list << separator << need.bytes << " bytes for " << need.what;
    separator = ", ";
  }
  fail(ErrorCode::kOutOfMemory, "needs ", list.str(), ", beside ", used_bytes(), " bytes in use; the memory limit is ",
       limit_, " bytes");
}

bool MemoryBudget::take(std::size_t bytes) {
  std::size_t used = used_bytes();
  do {
    if (used > limit_ || bytes > limit_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void MemoryCharge::add(const char* what, std::size_t bytes) {
  if (!budget_ || bytes == 0) return;
  if (!budget_->take(bytes)) {
    const MemoryNeed need{what, bytes};
    budget_->check({&need, 1});
    fail(ErrorCode::kOutOfMemory, "needs ", bytes, " bytes for ", what, ", which another thread has just taken");
  }
  bytes_ += bytes;
}

}  // namespace headway
