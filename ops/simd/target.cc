// Detection and cap of the SIMD target, on top of Highway's own process-wide choice.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/target.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

int LanesOfTarget() { return static_cast<int>(hwy::HWY_NAMESPACE::Lanes(hwy::HWY_NAMESPACE::ScalableTag<float>())); }
std::int64_t BitOfTarget() { return HWY_TARGET; }

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstdlib>
#include <mutex>

#include "headway/error.h"
#include "ops/simd/target.h"
#include "runtime/base/check.h"

namespace headway {
HWY_EXPORT(LanesOfTarget);
HWY_EXPORT(BitOfTarget);

namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

// Highway keeps one set of disabled targets for the process; disabling every better one is the cap.
void disable_better_than(std::int64_t bit) { hwy::DisableTargets(bit == 0 ? 0 : bit - 1); }

// The targets of this CPU without the cap in force; the cap is put back.
std::vector<std::int64_t> all_targets() {
  static const std::vector<std::int64_t> bits = [] {
    disable_better_than(0);
    return hwy::SupportedAndGeneratedTargets();
  }();
  return bits;
}

std::mutex& cap_mutex() {
  static std::mutex mutex;
  return mutex;
}

void set_cap(const std::string& name) {
  if (name.empty()) {
    disable_better_than(0);
    return;
  }
  std::string known;
  for (std::int64_t bit : all_targets()) {
    if (upper(name) == upper(hwy::TargetName(bit))) {
      disable_better_than(bit);
      return;
    }
    known += known.empty() ? "" : ", ";
    known += hwy::TargetName(bit);
  }
  fail(ErrorCode::kInvalidArgument, "SIMD target '", name, "' is not one of this CPU's: ", known);
}

}  // namespace

void apply_simd_environment() {
  static const bool once = [] {
    const std::lock_guard lock(cap_mutex());
    all_targets();
    const char* cap = std::getenv("HEADWAY_SIMD");
    if (cap != nullptr && *cap != '\0') set_cap(cap);
    return true;
  }();
  static_cast<void>(once);
}

std::vector<std::string> simd_targets() {
  apply_simd_environment();
  std::vector<std::string> names;
  for (std::int64_t bit : all_targets()) names.emplace_back(hwy::TargetName(bit));
  return names;
}

std::vector<std::string> simd_compiled_targets() {
  std::vector<std::string> names;
  // One bit a target, the best ones lowest.
  for (std::int64_t bits = HWY_TARGETS; bits != 0; bits &= bits - 1) names.emplace_back(hwy::TargetName(bits & -bits));
  return names;
}

std::string simd_target() {
  apply_simd_environment();
  return hwy::TargetName(HWY_DYNAMIC_DISPATCH(BitOfTarget)());
}

void cap_simd_target(const std::string& name) {
  apply_simd_environment();
  const std::lock_guard lock(cap_mutex());
  set_cap(name);
}

int simd_lanes() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(LanesOfTarget)();
}

bool cpu_is_amd() {
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC_ACTUAL || HWY_COMPILER_CLANG)
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

bool cpu_has_bf16_products() {
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC_ACTUAL || HWY_COMPILER_CLANG)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

std::string highway_version() {
  return std::to_string(HWY_MAJOR) + "." + std::to_string(HWY_MINOR) + "." + std::to_string(HWY_PATCH);
}

}  // namespace headway
#endif  // HWY_ONCE
