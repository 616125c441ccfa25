// Plain small products through oneDNN: one cached matmul per shape, the least recently used evicted first. Decides
// nothing about tiles.
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "ops/matmul/matmul.h"
#include "ops/matmul/onednn_adapter.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

struct HashSpec {
  std::size_t operator()(const TileMatmulSpec& s) const {
    std::uint64_t hash = (s.transpose_b ? 3 : 1) + static_cast<std::uint64_t>(s.type) * 8;
    for (const std::int64_t v :
         {s.rows, s.columns, s.depth, s.a_stride, s.b_stride, s.c_stride, static_cast<std::int64_t>(s.accumulate)}) {
      hash = (hash ^ static_cast<std::uint64_t>(v)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

/// Strides of unit dims do not matter: with dense ones, equal products share a matmul.
TileMatmulSpec normalised(TileMatmulSpec s) {
  if (s.rows == 1) s.a_stride = s.depth, s.c_stride = s.columns;
  if ((s.transpose_b ? s.columns : s.depth) == 1) s.b_stride = s.transpose_b ? s.depth : s.columns;
  return s;
}

void check(const TileMatmulSpec& s) {
  require(s.rows >= 0 && s.columns >= 0 && s.depth >= 0, "matmul sizes are ", s.rows, " x ", s.columns, " x ", s.depth,
          ", expected none below 0");
  const std::int64_t b_width = s.transpose_b ? s.depth : s.columns;
  require(s.a_stride >= s.depth, "a_stride is ", s.a_stride, ", expected at least depth = ", s.depth);
  require(s.b_stride >= b_width, "b_stride is ", s.b_stride, ", expected at least ", b_width);
  require(s.c_stride >= s.columns, "c_stride is ", s.c_stride, ", expected at least columns = ", s.columns);
}

onednn::MatmulDescs descs_of(const TileMatmulSpec& s) {
  onednn::MatmulDescs d;
  d.a = onednn::matrix_desc(s.rows, s.depth, s.a_stride, s.type);
  d.b = s.transpose_b ? onednn::transposed_desc(s.columns, s.depth, s.b_stride, s.type)
                      : onednn::matrix_desc(s.depth, s.columns, s.b_stride, s.type);
  d.c = onednn::matrix_desc(s.rows, s.columns, s.c_stride);
  d.accumulate = s.accumulate;
  return d;
}

bool is_empty(const TileMatmulSpec& s) { return s.rows == 0 || s.columns == 0 || s.depth == 0; }

}  // namespace

struct TileMatmulCache::Impl {
  struct Entry {
    explicit Entry(std::shared_ptr<const onednn::Matmul> m) : matmul(std::move(m)) {}
    std::shared_ptr<const onednn::Matmul> matmul;  // shared: it may be evicted while another thread executes it
    std::atomic<std::uint64_t> last_use{0};
  };

  std::size_t capacity = 1;
  mutable std::shared_mutex mutex;
  std::unordered_map<TileMatmulSpec, Entry, HashSpec> entries;
  std::atomic<std::uint64_t> clock{0};

  std::shared_ptr<const onednn::Matmul> find(const TileMatmulSpec& spec) {
    const std::shared_lock lock(mutex);
    const auto it = entries.find(spec);
    if (it == entries.end()) return nullptr;
    it->second.last_use.store(clock.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    return it->second.matmul;
  }

  std::shared_ptr<const onednn::Matmul> find_or_make(const TileMatmulSpec& given) {
    check(given);
    const TileMatmulSpec spec = normalised(given);
    if (auto found = find(spec)) return found;
    // Made outside the lock: generating code takes a millisecond, which other threads need not wait for.
    auto made = onednn::translate_errors("make the matmul of a tile",
                                         [&] { return std::make_shared<const onednn::Matmul>(descs_of(spec)); });
    const std::unique_lock lock(mutex);
    if (entries.size() >= capacity && entries.find(spec) == entries.end()) evict_oldest();
    Entry& entry = entries.try_emplace(spec, made).first->second;
    entry.last_use.store(clock.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    return entry.matmul;
  }

  void evict_oldest() {
    auto oldest = entries.begin();
    for (auto it = entries.begin(); it != entries.end(); ++it) {
      if (it->second.last_use.load(std::memory_order_relaxed) < oldest->second.last_use.load(std::memory_order_relaxed))
        oldest = it;
    }
    entries.erase(oldest);
  }
};

TileMatmulCache::TileMatmulCache(std::size_t capacity) : impl_(std::make_unique<Impl>()) {
  require(capacity >= 1, "capacity is ", capacity, ", expected at least 1");
  impl_->capacity = capacity;
}

TileMatmulCache::~TileMatmulCache() = default;

void TileMatmulCache::run(const TileMatmulSpec& spec, const void* a, const void* b, float* c, std::byte* scratch,
                          std::size_t scratch_bytes) const {
  if (is_empty(spec)) {
    check(spec);
    for (std::int64_t i = 0; i < spec.rows && !spec.accumulate; ++i) {
      std::memset(c + i * spec.c_stride, 0, sizeof(float) * static_cast<std::size_t>(spec.columns));
    }
    return;
  }
  const std::shared_ptr<const onednn::Matmul> matmul = impl_->find_or_make(spec);
  require(scratch_bytes >= matmul->scratch_bytes(), "scratch has ", scratch_bytes, " bytes, expected at least ",
          matmul->scratch_bytes());
  matmul->execute({.a = a, .b = b, .b_memory = nullptr, .bias_memory = nullptr, .c = c, .scratch = scratch});
}

std::size_t TileMatmulCache::scratch_bytes(const TileMatmulSpec& spec) const {
  return is_empty(spec) ? 0 : impl_->find_or_make(spec)->scratch_bytes();
}

std::size_t TileMatmulCache::size() const {
  const std::shared_lock lock(impl_->mutex);
  return impl_->entries.size();
}

}  // namespace headway
