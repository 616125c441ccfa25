// What the build for WebAssembly has in place of oneDNN, of threads and of Highway's library: a single thread, and a
// single SIMD target that was chosen when it was compiled.
#include <cstdint>

#include "headway/threads.h"
#include "ops/attention/implementation.h"
#include "ops/matmul/onednn_bf16_check.h"
#include "runtime/base/check.h"

namespace headway {

std::string onednn_tiles_why_impossible(const AttentionSpec&) { return "built without oneDNN"; }
std::unique_ptr<const AttentionImplementation> make_onednn_tiles(const AttentionSpec&) {
  fail(ErrorCode::kUnsupported, "built without oneDNN");
}

bool onednn::bf16_has_tiles() { return false; }

Threads Threads::openmp(int) { return {1, nullptr, nullptr}; }
void Threads::run(std::int64_t tasks, TaskFunction fn, void* context) const {
  for (std::int64_t task = 0; task < tasks; ++task) fn(context, task, 0);
}

}  // namespace headway

// Declared as Highway's headers do: which targets the CPU has. Those that were compiled are one.
namespace hwy {

std::int64_t SupportedTargets() { return ~std::int64_t{0}; }
void DisableTargets(std::int64_t) {}
[[noreturn]] void Abort(const char*, int, const char*, ...) { __builtin_trap(); }

}  // namespace hwy
