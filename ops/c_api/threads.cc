// The C API's threads, memory and version.
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "ops/c_api/guarded.h"
#include "ops/c_api/handles.h"

using namespace headway;         // NOLINT: functions of the C API are in no namespace
using namespace headway::c_api;  // NOLINT

const char* headway_version(void) { return version(); }

void* headway_allocate(size_t bytes) {
  constexpr size_t kAlignment = 64;
  if (bytes == 0 || bytes > SIZE_MAX - kAlignment) return nullptr;
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

void headway_free(void* memory) { std::free(memory); }

headway_status headway_threads_create_pool(int workers, headway_threads** threads) {
  return guarded([&] {
    give(std::make_unique<headway_threads>(headway_threads{Threads::pool(workers)}),
         &required_result(threads, "threads"));
  });
}

headway_status headway_threads_create_openmp(int workers, headway_threads** threads) {
  return guarded([&] {
    give(std::make_unique<headway_threads>(headway_threads{Threads::openmp(workers)}),
         &required_result(threads, "threads"));
  });
}

headway_status headway_threads_create_host(int workers, headway_parallel_for parallel_for, void* host,
                                           headway_threads** threads) {
  return guarded([&] {
    require(parallel_for != nullptr, "parallel_for is null");
    give(std::make_unique<headway_threads>(headway_threads{Threads::host(workers, parallel_for, host)}),
         &required_result(threads, "threads"));
  });
}

void headway_threads_destroy(headway_threads* threads) { delete threads; }

int headway_threads_workers(const headway_threads* threads) {
  return threads == nullptr ? 1 : threads->threads.workers();
}
