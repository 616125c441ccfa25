// What the library says of itself and of the machine.
#include "headway/build_info.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "headway/version.h"
#include "ops/matmul/onednn_version.h"
#include "ops/simd/target.h"
#include "tests/runtime/error_of.h"
#include "tests/support/paths.h"

namespace headway::testing {
namespace {

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(BuildInfo, SaysWhatWasBuilt) {
  const BuildInfo build = build_info();
  EXPECT_EQ(build.version, version());
  EXPECT_EQ(build.onednn_runtime, onednn_version());
  EXPECT_EQ(build.highway, highway_version());
  // The build finds one oneDNN: what it compiles against is what the tests run with.
  EXPECT_EQ(build.onednn_compiled.substr(0, build.onednn_compiled.find('.')),
            build.onednn_runtime.substr(0, build.onednn_runtime.find('.')));
  EXPECT_NE(build.compiler.find_first_of("0123456789"), std::string::npos) << build.compiler;
}

TEST(CpuInfo, AvailableTargetsAreCompiledOnes) {
  const CpuInfo cpu = cpu_info();
  const std::vector<std::string> compiled = build_info().simd_compiled;
  ASSERT_FALSE(cpu.simd_available.empty());
  for (const std::string& target : cpu.simd_available) EXPECT_TRUE(holds(compiled, target)) << target;
  // Best first, as they are compiled.
  for (std::size_t i = 1; i < cpu.simd_available.size(); ++i) {
    EXPECT_LT(std::find(compiled.begin(), compiled.end(), cpu.simd_available[i - 1]),
              std::find(compiled.begin(), compiled.end(), cpu.simd_available[i]));
  }
  EXPECT_TRUE(holds(cpu.simd_available, cpu.simd_current));
  EXPECT_FALSE(cpu.name.empty());
  EXPECT_GE(cpu.logical_cores, 1);
}

TEST(CpuInfo, FollowsTheCap) {
  for (const std::string& target : cpu_info().simd_available) {
    const SimdCap cap(target);
    EXPECT_EQ(cpu_info().simd_current, target);
    EXPECT_EQ(cpu_info().simd_lanes, simd_lanes());
  }
}

TEST(OnednnVersion, AnotherMajorIsRefusedNamingBoth) {
  EXPECT_NO_THROW(require_same_onednn(3, 3));
  EXPECT_EQ(error_of([] { require_same_onednn(2, 3); }, ErrorCode::kUnsupported),
            "oneDNN is major version 3 at run time, expected 2 as compiled against");
}

}  // namespace
}  // namespace headway::testing
