// A stack of free blocks: the one released last is warm.
#include "tools/engine/block_pool.h"

#include <algorithm>

namespace headway::engine {

BlockPool::BlockPool(std::int64_t blocks, std::int64_t block_size) : block_size_(block_size), size_(blocks) {
  for (std::int64_t b = blocks; b > 0; --b) free_.push_back(static_cast<std::int32_t>(b - 1));
}

std::int64_t BlockPool::missing(std::int64_t length, std::int64_t held) const {
  return std::max<std::int64_t>((length + block_size_ - 1) / block_size_ - held, 0);
}

bool BlockPool::grow(std::int64_t length, std::vector<std::int32_t>* held) {
  const std::int64_t more = missing(length, static_cast<std::int64_t>(held->size()));
  if (more > available()) return false;
  held->insert(held->end(), free_.end() - more, free_.end());
  free_.erase(free_.end() - more, free_.end());
  return true;
}

void BlockPool::release(std::vector<std::int32_t>* held) {
  free_.insert(free_.end(), held->begin(), held->end());
  held->clear();
}

}  // namespace headway::engine
