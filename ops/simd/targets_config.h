// Which Highway targets are left out, for all kernels alike: include this before any Highway header. SSSE3 and AVX3_DL
// differ from their neighbours only in instructions that f32 kernels do not use; scalable vectors have no length when
// a register tile is laid out, so Arm takes NEON.
#pragma once

// Sanitizers make every kernel several times as long to compile. With them SSE4 is left out, whose source is AVX2's,
// and loops are written out for two steps instead of eight (tile-inl.h); with the thread sanitizer AVX-512 too, since
// who shares memory does not depend on the width of a vector.
#if defined(__SANITIZE_THREAD__)
#define HEADWAY_UNSANITIZED_TARGETS (HWY_SSE4 | (2 * HWY_AVX3 - 1))  // better targets have lower bits
#define HEADWAY_STEPS_TOGETHER 2
#elif defined(__SANITIZE_ADDRESS__)
#define HEADWAY_UNSANITIZED_TARGETS HWY_SSE4
#define HEADWAY_STEPS_TOGETHER 2
#else
#define HEADWAY_UNSANITIZED_TARGETS 0
#define HEADWAY_STEPS_TOGETHER 8
#endif
#define HWY_DISABLED_TARGETS \
  (HEADWAY_UNSANITIZED_TARGETS | HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
