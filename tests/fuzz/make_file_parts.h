// What the makers of files have in common: odd numbers and names, random bytes and dims.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fuzz/dice.h"
#include "tests/fuzz/make_file.h"

namespace headway::fuzz {

MadeFile make_safetensors(Dice* dice);
MadeFile make_npy(Dice* dice);
MadeFile make_onnx_tensor(Dice* dice);

struct TypeText {
  const char* text;
  std::int64_t bytes;
};
/// Numbers that are no size of anything, as texts: what a reader converts must survive them.
inline constexpr const char* kNumbers[] = {"0",
                                           "1",
                                           "3",
                                           "-1",
                                           "-0",
                                           "00",
                                           "1.0",
                                           "1e3",
                                           "+2",
                                           "2147483648",
                                           "4294967296",
                                           "3037000500",
                                           "1152921504606846976",
                                           "4611686018427387904",
                                           "9223372036854775807",
                                           "9223372036854775808",
                                           "18446744073709551615",
                                           "18446744073709551616",
                                           "99999999999999999999999999",
                                           "null",
                                           "\"4\"",
                                           "[]",
                                           "True",
                                           ""};
inline constexpr const char* kSpaces[] = {"", "", "", " ", "  ", "\t", "\n", "\r\n"};
inline constexpr const char* kNames[] = {
    "a",       "weight", "layer.0.weight", "",         " ",    "\\u0041", "\\u00e9", "\\ud83d\\ude00", "\\ud83d",
    "\\u0000", "\\n",    "__metadata__",   "\xc3\xa9", "\xc3", "\xff",    "../a"};
inline constexpr std::size_t kRightNames = 3;

inline std::string number_text(Dice* dice) { return dice->pick(kNumbers); }

inline std::string random_bytes(Dice* dice, std::size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(dice->below(256));
  return bytes;
}

template <class Number>
std::string little_endian(Number number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

inline std::vector<std::int64_t> random_dims(Dice* dice) {
  std::vector<std::int64_t> dims;
  for (std::int64_t rank = dice->between(0, 3); rank > 0; --rank) dims.push_back(dice->between(0, 4));
  return dims;
}

inline std::int64_t count_of(const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

}  // namespace headway::fuzz
