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
// What whole models need around attention.
inline const Patterns kAround = {"ops/elementwise/", "ops/shape/", "ops/reduce/", "ops/norm/", "ops/conv/"};
inline const Patterns kSeesAllOps = Patterns{"ops/fusion/", "ops/register_ops.cc"} + kOutside;
inline const Patterns kOpsHeaders = {"ops/include/", "ops/attention/", "ops/multi_head_attention/",
                                     "ops/matmul/",  "ops/simd/",      "ops/reference/",
                                     "ops/c_api/"};

inline const std::vector<IncludeRule> kIncludeRules = {
    // Libraries, each in its quarantine.
    {{"hwy/"}, {"ops/simd/"}},
    {{"dnnl", "oneapi/"}, {"ops/matmul/"}},
    {{"google/protobuf/", "onnx/", "*.pb.h"}, {"runtime/onnx/", "tests/runtime/onnx/"}},
    {{"omp.h"}, Patterns{"runtime/threads/", "ops/matmul/"} + kOutside},
    {{"CLI/", "nlohmann/", "fmt/"}, kOutside},
    {{"gtest/", "gmock/"}, {"tests/"}},
    {{"benchmark/"}, {"perf/"}},
    // The machine: files, memory and time stamps.
    {{"sys/", "unistd.h", "fcntl.h", "sched.h", "dlfcn.h", "malloc.h", "x86intrin.h", "cpuid.h"},
     Patterns{"runtime/tensor/", "runtime/threads/", "runtime/profile/", "runtime/safetensors/"} + kOutside},

    // runtime/: its public headers are for everyone, except that the maths in ops/ does not know that a graph exists.
    {{"runtime/include/headway/graph.h", "runtime/include/headway/operator.h", "runtime/include/headway/session.h"},
     Patterns{"runtime/", "ops/include/headway/register_ops.h", "ops/include/headway/fusion.h", "ops/operators.h",
              "*_op.cc", "*_op.h"} +
         kSeesAllOps},
    {{"runtime/include/"}, {"runtime/", "ops/", "tools/", "perf/", "tests/"}},
    {{"runtime/onnx/"}, Patterns{"runtime/onnx/"} + kOutside},
    {{"runtime/"},
     {"runtime/tensor/", "runtime/graph/", "runtime/exec/", "runtime/profile/", "runtime/threads/",
      "runtime/safetensors/", "runtime/onnx/", "tests/runtime/"}},

    // ops/: simd <- matmul; reference, simd, matmul <- attention <- multi_head_attention <- fusion, register_ops.
    {{"ops/include/"}, kOpsHeaders + kAround + kSeesAllOps},
    {{"ops/simd/"},
     Patterns{"ops/simd/", "ops/matmul/", "ops/attention/", "ops/multi_head_attention/"} + kAround + kSeesAllOps},
    {{"ops/matmul/"}, Patterns{"ops/matmul/", "ops/attention/", "ops/multi_head_attention/"} + kAround + kSeesAllOps},
    {{"ops/reference/"}, Patterns{"ops/reference/", "ops/attention/", "ops/multi_head_attention/"} + kSeesAllOps},
    {{"ops/attention/"}, Patterns{"ops/attention/", "ops/multi_head_attention/"} + kSeesAllOps},
    {{"ops/multi_head_attention/"}, Patterns{"ops/multi_head_attention/"} + kSeesAllOps},
    {{"ops/fusion/"}, kSeesAllOps},
    {{"ops/elementwise/"}, kAround + kSeesAllOps},
    {{"ops/shape/"}, Patterns{"ops/shape/"} + kSeesAllOps},
    {{"ops/reduce/"}, Patterns{"ops/reduce/"} + kSeesAllOps},
    {{"ops/norm/"}, Patterns{"ops/norm/"} + kSeesAllOps},
    {{"ops/conv/"}, Patterns{"ops/conv/"} + kSeesAllOps},
    {{"ops/operators.h"}, Patterns{"*_op.cc"} + kSeesAllOps},
    // What is left of ops/ is what its folders share: the operators' common helpers.
    {{"ops/"}, {"ops/", "tests/"}},

    // Nobody looks outwards.
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
inline const Patterns kCHeaders = {"stddef.h", "stdint.h", "stdbool.h"};

}  // namespace headway::layers
