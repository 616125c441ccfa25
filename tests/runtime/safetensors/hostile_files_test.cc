// Files that lie: every truncation of a good file, every byte of its header replaced, and each kind of false claim.
// Worth most under the address and undefined-behaviour sanitizers.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "headway/safetensors.h"
#include "tests/support/scratch_file.h"

namespace headway {
namespace {

const std::string kGoodHeader =
    R"({"__metadata__":{"made \u00e9":"by"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"dtype":"BOOL","shape":[5],"data_offsets":[24,29]},"c":{"dtype":"I64","shape":[],"data_offsets":[29,37]}})";
constexpr std::size_t kGoodData = 37;

// Opens and reads every byte: what a caller would do with a file that was accepted.
std::size_t read_all(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  std::size_t sum = 0;
  for (const std::string& name : file.names()) {
    const ConstTensorView view = file.tensor(name);
    EXPECT_TRUE(view.is_contiguous());
    const std::size_t bytes = static_cast<std::size_t>(view.count()) * size_bytes(view.type);
    for (std::size_t i = 0; i < bytes; ++i) sum += std::to_integer<std::size_t>(view.data[i]);
  }
  return sum;
}

std::string refusal(const std::string& bytes) {
  const ScratchFile file(bytes);
  try {
    read_all(file.path());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_NE(text.find("headway-"), std::string::npos) << "names the file: " << text;
    return text;
  }
  return "accepted";
}

TEST(HostileFiles, GoodFileIsAccepted) { EXPECT_EQ(refusal(file_bytes(kGoodHeader, kGoodData)), "accepted"); }

TEST(HostileFiles, EveryTruncationIsRefused) {
  const std::string good = file_bytes(kGoodHeader, kGoodData);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(refusal(good.substr(0, size)), "accepted") << "cut after " << size << " bytes";
  }
  EXPECT_NE(refusal(good + '\0'), "accepted") << "one byte too many";
}

TEST(HostileFiles, EveryReplacedHeaderByteIsRefusedOrReadable) {
  const std::string good = file_bytes(kGoodHeader, kGoodData);
  int accepted = 0;
  for (std::size_t at = 0; at < 8 + kGoodHeader.size(); ++at) {
    for (const int byte : {0, 1, 0x22, 0x2C, 0x2D, 0x30, 0x39, 0x5B, 0x5C, 0x5D, 0x7B, 0x7D, 0x7F, 0x80, 0xC3, 0xFF}) {
      std::string bad = good;
      bad[at] = static_cast<char>(byte);
      accepted += refusal(bad) == "accepted";
    }
  }
  // Of some 3000 replacements only those of a letter in a name or in the metadata, or by the same byte, may pass.
  EXPECT_LT(accepted, 250);
}

TEST(HostileFiles, EveryDeletedOrDoubledHeaderByteIsRefusedOrReadable) {
  for (std::size_t at = 0; at < kGoodHeader.size(); ++at) {
    refusal(file_bytes(std::string(kGoodHeader).erase(at, 1), kGoodData));
    refusal(file_bytes(std::string(kGoodHeader).insert(at, 1, kGoodHeader[at]), kGoodData));
  }
}

TEST(HostileFiles, HeaderLength) {
  for (const std::uint64_t length : std::array<std::uint64_t, 7>{1ull << 63, ~0ull, ~0ull - 7, 1ull << 32, 100'000'001,
                                                                 kGoodHeader.size() + kGoodData + 1, 0}) {
    EXPECT_NE(refusal(with_length(length, kGoodHeader + std::string(kGoodData, '\0'))), "accepted") << length;
  }
}

struct Claim {
  const char* what;
  std::string header;
  std::size_t data_bytes;
  const char* says;  // part of the message
};

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"t\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
}
std::string two(const std::string& first, const std::string& second) {
  return R"({"p":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
         R"(},"q":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
}

TEST(HostileFiles, FalseClaims) {
  const std::string big = "9223372036854775807";
  const Claim claims[] = {
      {"not JSON", "hello", 0, "expected '{'"},
      {"list", "[]", 0, "expected '{'"},
      {"deep nesting", "{\"t\":" + std::string(100'000, '{'), 0, "expected '\"'"},
      {"deep shape", one("F32", std::string(100'000, '['), "[0,4]"), 4, "non-negative integer"},
      {"text after", one("F32", "[1]", "[0,4]") + "x", 4, "only spaces"},
      {"duplicate names",
       R"({"t":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"\u0074":{"dtype":"U8","shape":[],"data_offsets":[1,2]}})",
       2, "appears twice"},
      {"duplicate metadata", R"({"__metadata__":{"k":"1","k":"2"}})", 0, "appears twice"},
      {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0, "appears twice"},
      {"metadata number", R"({"__metadata__":{"k":1}})", 0, "expected '\"'"},
      {"duplicate field", R"({"t":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1, "dtype twice"},
      {"missing field", R"({"t":{"dtype":"U8","shape":[]}})", 1, "no data_offsets"},
      {"empty tensor object", R"({"t":{}})", 1, "expected '\"'"},
      {"unknown field", R"({"t":{"dtype":"U8","shape":[],"data_offsets":[0,1],"x":1}})", 1, "field \"x\""},
      {"unknown type", one("F31", "[1]", "[0,4]"), 4, "\"F31\""},
      {"type with newline", one("F\\n", "[1]", "[0,4]"), 4, "\\x0A"},
      {"negative dim", one("F32", "[-1]", "[0,4]"), 4, "non-negative integer"},
      {"fraction", one("F32", "[1.5]", "[0,4]"), 4, "expected ']'"},
      {"exponent", one("F32", "[1e2]", "[0,4]"), 4, "expected ']'"},
      {"leading zero", one("F32", "[01]", "[0,4]"), 4, "leading zeros"},
      {"dim beyond 63 bits", one("F32", "[9223372036854775808]", "[0,4]"), 4, "63 bits"},
      {"huge dim", one("F32", "[" + big + "]", "[0,4]"), 4, "63 bits"},
      {"product overflows", one("U8", "[4294967296,4294967296]", "[0,0]"), 0, "63 bits"},
      {"product wraps to 4", one("F32", "[4611686018427387905]", "[0,4]"), 4, "63 bits"},
      {"zero hides an overflow", one("U8", "[0," + big + "," + big + "]", "[0,0]"), 0, "63 bits"},
      {"rank 9", one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "at most 8"},
      {"wrong size for type", one("F64", "[1]", "[0,4]"), 4, "needs 8"},
      {"reversed", one("F32", "[1]", "[4,0]"), 4, "ends at 0"},
      {"beyond the file", one("F32", "[2]", "[0,8]"), 4, "the data has 4"},
      {"far beyond", one("U8", "[" + big + "]", "[0," + big + "]"), 4, "the data has 4"},
      {"one offset", one("F32", "[1]", "[0]"), 4, "expected ','"},
      {"three offsets", one("F32", "[1]", "[0,4,4]"), 4, "expected ']'"},
      {"overlap", two("[0,4]", "[2,6]"), 6, "overlap"},
      {"same bytes twice", two("[0,4]", "[0,4]"), 4, "overlap"},
      {"hole", two("[0,4]", "[5,9]"), 9, "hole"},
      {"hole at the start", two("[1,5]", "[5,9]"), 9, "hole"},
      {"data nobody describes", two("[0,4]", "[4,8]"), 9, "the data has 9"},
      {"control character", "{\"a\x01\":1}", 0, "control"},
      {"bad UTF-8", "{\"\xC0\xAF\":1}", 0, "UTF-8"},
      {"lone surrogate", R"({"\ud800":1})", 0, "surrogate"},
      {"bad escape", R"({"\x":1})", 0, "escape"},
  };
  for (const Claim& claim : claims) {
    const std::string text = refusal(file_bytes(claim.header, claim.data_bytes));
    EXPECT_NE(text.find(claim.says), std::string::npos) << claim.what << ": " << text;
  }
}

TEST(HostileFiles, BoolThatIsNeither) {
  std::string bytes = file_bytes(one("BOOL", "[3]", "[0,3]"), 3);
  bytes.back() = 2;
  EXPECT_NE(refusal(bytes).find("holds 2 at element 2"), std::string::npos);
}

TEST(HostileFiles, NotAFile) {
  for (const std::string& path : {std::string("/nonexistent/x.safetensors"), ::testing::TempDir(), std::string("")}) {
    try {
      SafetensorsFile::open(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
    }
  }
}

}  // namespace
}  // namespace headway
