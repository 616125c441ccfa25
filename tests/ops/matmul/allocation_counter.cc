// Compiled alone: it replaces operator new.
// Replaces operator new of the whole test program; unarmed, it is malloc.
#include "tests/ops/matmul/allocation_counter.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>

namespace headway::testing {
namespace {

std::atomic<bool> armed{false};
std::atomic<std::int64_t> counted{0};

/// Where the shared library lies in memory; empty when oneDNN is linked into the program.
std::uintptr_t onednn_begin = 0, onednn_end = 0;

void find_onednn() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libdnnl") == std::string::npos) continue;
    const std::size_t dash = line.find('-');
    if (onednn_begin == 0) onednn_begin = std::stoull(line.substr(0, dash), nullptr, 16);
    onednn_end = std::stoull(line.substr(dash + 1), nullptr, 16);
  }
}

bool called_from_onednn(const void* caller) {
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  return at >= onednn_begin && at < onednn_end;
}

void note(const void* caller) {
  if (armed.load(std::memory_order_relaxed) && !called_from_onednn(caller)) {
    counted.fetch_add(1, std::memory_order_relaxed);
  }
}

void* allocate(std::size_t bytes) {
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

void* allocate_aligned(std::size_t bytes, std::size_t alignment) {
  if (void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

AllocationCounter::AllocationCounter() {
  onednn_begin = 0;
  find_onednn();
  counted = 0;
  armed = true;
}
AllocationCounter::~AllocationCounter() { armed = false; }
std::int64_t AllocationCounter::count() const { return counted; }

}  // namespace headway::testing

void* operator new(std::size_t bytes) {
  headway::testing::note(__builtin_return_address(0));
  return headway::testing::allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  headway::testing::note(__builtin_return_address(0));
  return headway::testing::allocate(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  headway::testing::note(__builtin_return_address(0));
  return headway::testing::allocate_aligned(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  headway::testing::note(__builtin_return_address(0));
  return headway::testing::allocate_aligned(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  headway::testing::note(__builtin_return_address(0));
  return std::malloc(bytes > 0 ? bytes : 1);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  headway::testing::note(__builtin_return_address(0));
  return std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
