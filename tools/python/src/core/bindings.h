// What each file of the extension adds to its module, and what they share: workspaces and lists of recent plans.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "headway/profiler.h"
#include "headway/tensor.h"
#include "headway/threads.h"

namespace headway::python {

namespace nb = nanobind;

void bind_runtime(nb::module_& module);
void bind_attention(nb::module_& module);
void bind_cache(nb::module_& module);
void bind_layer(nb::module_& module);
void bind_session(nb::module_& module);

/// At least so many bytes, which this thread keeps. Contents are not.
inline std::byte* workspace(std::size_t bytes) {
  thread_local AlignedBuffer buffer;
  if (buffer.size_bytes() < bytes) {
    buffer = AlignedBuffer();
    buffer = AlignedBuffer(bytes);
  }
  return bytes == 0 ? nullptr : buffer.data();
}

/// The values of the keys asked for last, at most `capacity`. Thread-safe; what is dropped lives as long as its users.
template <class Key, class Value>
class RecentValues {
 public:
  explicit RecentValues(std::size_t capacity) : capacity_(capacity) {}

  template <class Make>
  std::shared_ptr<const Value> get(const Key& key, Make&& make) {
    {
      const std::lock_guard lock(mutex_);
      for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        if (entry->first == key) {
          entries_.splice(entries_.begin(), entries_, entry);
          return entries_.front().second;
        }
      }
    }
    std::shared_ptr<const Value> value = make();
    const std::lock_guard lock(mutex_);
    entries_.emplace_front(key, value);
    if (entries_.size() > capacity_) entries_.pop_back();
    return value;
  }

 private:
  std::size_t capacity_;
  std::mutex mutex_;
  std::list<std::pair<Key, std::shared_ptr<const Value>>> entries_;
};

}  // namespace headway::python
