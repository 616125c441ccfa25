// How many bytes a session has taken and may take. Decides what is refused, before it is allocated; allocates nothing
// itself and knows no tensors.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace headway {

/// Bytes for one purpose, named in messages.
struct MemoryNeed {
  std::string what;
  std::size_t bytes = 0;
};

class MemoryBudget {
 public:
  /// Without a limit: seven eighths of what the machine or the container has.
  explicit MemoryBudget(std::optional<std::size_t> limit_bytes);

  std::size_t limit_bytes() const { return limit_; }
  std::size_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  bool fits(std::size_t bytes) const;
  /// Throws kOutOfMemory, naming the needs, what is in use and the limit, unless they fit all together.
  void check(std::span<const MemoryNeed> needs) const;

 private:
  friend class MemoryCharge;
  /// False when it does not fit.
  bool take(std::size_t bytes);
  void give_back(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

/// Bytes taken from a budget for as long as the object lives. Not thread-safe; the budget is.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  explicit MemoryCharge(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
  MemoryCharge(MemoryCharge&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryCharge() {
    if (budget_) budget_->give_back(bytes_);
  }

  /// Takes more. Throws kOutOfMemory when that does not fit.
  void add(const char* what, std::size_t bytes);
  std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<MemoryBudget> budget_;
  std::size_t bytes_ = 0;
};

/// a + b, or the largest number there is.
inline std::size_t saturating_sum(std::size_t a, std::size_t b) {
  std::size_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? static_cast<std::size_t>(-1) : sum;
}

}  // namespace headway
