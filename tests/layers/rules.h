// The layer rules as data: who may include what, and what a source file must look like. Change the architecture here
// and nowhere else. Knows no file system.
#pragma once

#include <string_view>
#include <vector>

namespace headway::layers {

/// Patterns match the beginning of a path; with a leading '*', its end.
using Patterns = std::vector<std::string_view>;

/// `included` may be included from `from` and from nowhere else. The first rule that fits an include decides; one that
/// fits none must be a header of the C++ standard library.
struct IncludeRule {
  Patterns included;
  Patterns from;
};

inline Patterns operator+(Patterns a, const Patterns& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline const Patterns kOutside = {"tools/", "perf/", "tests/"};
// The rooms of ops/ in layer order: a room may see itself and those before it. The maths knows no graph; graph and
// fusion do.
inline const Patterns kGraphRooms = Patterns{"ops/graph/", "ops/fusion/", "ops/model/"} + kOutside;
inline const Patterns kSeesLayer = Patterns{"ops/multi_head_attention/"} + kGraphRooms;
inline const Patterns kSeesCached = Patterns{"ops/cached_attention/"} + kSeesLayer;
inline const Patterns kSeesAttention = Patterns{"ops/attention/"} + kSeesCached;
inline const Patterns kSeesMachine = Patterns{"ops/info/"} + kSeesAttention;

inline const std::vector<IncludeRule> kIncludeRules = {
    // Libraries, each in its quarantine.
    {{"hwy/"}, {"ops/simd/", "tools/measure/peak/"}},
    {{"dnnl", "oneapi/"}, {"ops/matmul/"}},
    {{"google/protobuf/", "onnx/", "*.pb.h"},
     {"runtime/onnx/", "tests/runtime/onnx/", "tests/ops/model/", "tests/fuzz/"}},
    {{"omp.h"}, Patterns{"runtime/threads/", "ops/matmul/"} + kOutside},
    {{"CLI/", "nlohmann/", "fmt/"}, kOutside},
    {{"gtest/", "gmock/", "headway_test_paths.h"}, {"tests/"}},
    {{"benchmark/"}, {"perf/"}},
    {{"nanobind/"}, {"tools/python/"}},
    // The machine: files, memory and time stamps.
    {{"sys/", "unistd.h", "fcntl.h", "sched.h", "pthread.h", "signal.h", "dlfcn.h", "link.h", "execinfo.h", "malloc.h",
      "x86intrin.h", "cpuid.h"},
     Patterns{"runtime/base/", "runtime/tensor/", "runtime/threads/", "runtime/profile/"} + kOutside},

    // runtime/: its public headers are for everyone, but those of the graph only for the rooms that know one.
    {{"runtime/include/headway/graph.h", "runtime/include/headway/operator.h", "runtime/include/headway/session.h"},
     Patterns{"runtime/", "ops/include/headway/register_ops.h", "ops/include/headway/fusion.h",
              "ops/include/headway/model.h"} +
         kGraphRooms},
    {{"runtime/include/"}, {"runtime/", "ops/", "tools/", "perf/", "tests/"}},
    {{"runtime/base/"}, Patterns{"runtime/", "ops/"} + kOutside},
    {{"runtime/onnx/"}, Patterns{"runtime/onnx/"} + kOutside},
    {{"runtime/"},
     {"runtime/tensor/", "runtime/graph/", "runtime/exec/", "runtime/profile/", "runtime/threads/",
      "runtime/safetensors/", "runtime/onnx/", "tests/runtime/"}},

    // ops/
    {{"ops/include/"}, Patterns{"ops/"} + kOutside},
    {{"ops/base/"}, Patterns{"ops/"} + kOutside},
    {{"ops/simd/"}, Patterns{"ops/simd/", "ops/matmul/"} + kSeesMachine},
    {{"ops/matmul/"}, Patterns{"ops/matmul/"} + kSeesMachine},
    {{"ops/reference/"}, Patterns{"ops/reference/"} + kSeesAttention},
    {{"ops/attention/"}, kSeesAttention},
    {{"ops/cached_attention/"}, kSeesCached},
    {{"ops/multi_head_attention/"}, kSeesLayer},
    {{"ops/c_api/"}, {"ops/c_api/"}},
    {{"ops/graph/"}, kGraphRooms},
    {{"ops/fusion/"}, kGraphRooms},

    // Nobody looks outwards.
    {{"tools/measure/peak/"}, kOutside},
    {{"tools/"}, {"tools/", "tests/"}},
    {{"perf/"}, {"perf/", "tests/"}},
    {{"tests/"}, {"tests/", "perf/"}},
};

inline constexpr int kMaxLines = 500;

/// Words that may stand only below `from`. Written in two halves so that this file does not hold them.
struct WordRule {
  std::string_view first_half;
  std::string_view second_half;
  Patterns from;
  bool is_path;  ///< counts only where a path can begin: not inside a longer one
};
inline const std::vector<WordRule> kWordRules = {
    {"omp_set_", "num_threads", {"ops/matmul/", "tests/"}, false},  // a host's OpenMP settings are the host's
    {"/work", "/", {}, true},                                       // paths of one machine
    {"/home", "/", {}, true},
    {"/root", "/", {}, true},
    {"/tmp", "/", {}, true},
};

/// C headers that count as standard library.
inline const Patterns kCHeaders = {"math.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h"};

}  // namespace headway::layers
