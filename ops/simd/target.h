// The SIMD target: which one this CPU has, which one a plan uses, and the cap that lets every path be tested on one
// machine (HEADWAY_SIMD). Knows no kernel.
#pragma once

#include <string>
#include <vector>

namespace headway {

/// Name of the target that plans made now will use: "AVX3", "AVX2", "SSE4", "NEON", "SCALAR", ….
std::string simd_target();
/// Names of all compiled targets that this CPU can run, best first.
std::vector<std::string> simd_targets();
/// Names of all targets that kernels were compiled for, best first.
std::vector<std::string> simd_compiled_targets();
/// Caps the target from now on to `name` (as simd_targets() spells it; case does not matter). An empty name lifts the
/// cap. Throws kInvalidArgument listing what this CPU has. For tests and tools, while no other thread makes a plan;
/// plans made before keep theirs.
void cap_simd_target(const std::string& name);
/// Applies HEADWAY_SIMD, once a process. Every function that hands out kernels calls it first.
void apply_simd_environment();
/// Floats a vector of the current target holds.
int simd_lanes();
/// Where thresholds were measured on one vendor's cores only. False where it cannot be told.
bool cpu_is_amd();
/// Whether the CPU multiplies pairs of bf16 and adds them up in f32 (AVX512_BF16). False where it cannot be told.
bool cpu_has_bf16_products();
/// "1.0.3": of the headers compiled against.
std::string highway_version();

}  // namespace headway
