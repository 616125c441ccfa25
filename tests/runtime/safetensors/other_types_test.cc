// Tensors that this library cannot show stop nobody but who asks for them, and are checked like all others.
#include <gtest/gtest.h>

#include "headway/safetensors.h"
#include "tests/runtime/error_of.h"
#include "tests/support/scratch_file.h"

namespace headway {
namespace {

using testing::error_of;
using testing::expect_contains;

std::string with_other(const std::string& type, const std::string& shape, std::size_t bytes) {
  const std::string end = std::to_string(4 + bytes);
  return file_bytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"other":{"dtype":")" + type +
                        R"(","shape":)" + shape + R"(,"data_offsets":[4,)" + end + "]}}",
                    4 + bytes);
}

struct OtherCase {
  const char* type;
  const char* shape;
  std::size_t bytes;
};

TEST(OtherTypes, AreListedAndRefusedOnlyWhenAskedFor) {
  for (const OtherCase& c : {OtherCase{"U32", "[3]", 12},
                             {"I16", "[3]", 6},
                             {"U16", "[2,2]", 8},
                             {"U64", "[]", 8},
                             {"F8_E4M3", "[5]", 5},
                             {"F8_E5M2", "[5]", 5},
                             {"C64", "[1]", 8},
                             {"F4", "[2,3]", 3},
                             {"NEW", "[7]", 9},
                             {"F32", "[1,1,1,1,1,1,1,1,1]", 4}}) {
    const ScratchFile scratch(with_other(c.type, c.shape, c.bytes));
    const SafetensorsFile file = SafetensorsFile::open(scratch.path());
    EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "other"})) << c.type;
    EXPECT_EQ(file.tensor("a").count(), 1) << c.type;
    EXPECT_TRUE(file.has("other"));
    EXPECT_TRUE(file.can_show("a"));
    EXPECT_FALSE(file.can_show("other")) << c.type;
    const std::string message = error_of([&] { file.tensor("other"); });
    expect_contains(message, "tensor \"other\"");
    expect_contains(message, std::string(c.type) == "F32" ? "9 dims, expected at most 8" : c.type);
  }
}

TEST(OtherTypes, MustHaveTheBytesOfTheirShape) {
  for (const OtherCase& c : {OtherCase{"U32", "[3]", 11},
                             {"I16", "[3]", 8},
                             {"F8_E4M3", "[5]", 4},
                             {"U64", "[4611686018427387904,4]", 0},
                             {"F4", "[3]", 1}}) {
    const ScratchFile scratch(with_other(c.type, c.shape, c.bytes));
    expect_contains(error_of([&] { SafetensorsFile::open(scratch.path()); }), "tensor \"other\"");
  }
}

}  // namespace
}  // namespace headway
