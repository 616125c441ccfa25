// The blocks of a paged cache: which are free. Knows no tensors.
#pragma once

#include <cstdint>
#include <vector>

namespace headway::engine {

class BlockPool {
 public:
  BlockPool(std::int64_t blocks, std::int64_t block_size);

  std::int64_t block_size() const { return block_size_; }
  std::int64_t size() const { return size_; }
  std::int64_t available() const { return static_cast<std::int64_t>(free_.size()); }
  /// How many more blocks than `held` hold `length` positions.
  std::int64_t missing(std::int64_t length, std::int64_t held) const;
  /// Adds blocks to `held` until `length` positions fit. False, and nothing taken, when there are too few.
  bool grow(std::int64_t length, std::vector<std::int32_t>* held);
  void release(std::vector<std::int32_t>* held);

 private:
  std::int64_t block_size_, size_;
  std::vector<std::int32_t> free_;
};

}  // namespace headway::engine
