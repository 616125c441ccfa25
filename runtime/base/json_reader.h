// A cursor over the JSON subset that a safetensors header uses: strings, non-negative integers and punctuation. Decides
// what is well formed; knows nothing of tensors. Cannot recurse, so no nesting depth can hurt it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headway {

/// Reads a text front to back. Every function skips leading white space and throws kInvalidArgument naming the file,
/// the byte and what was expected there.
class JsonReader {
 public:
  JsonReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// Takes `symbol`, which must come next.
  void expect(char symbol);
  /// Takes `symbol` if it comes next.
  bool accept(char symbol);
  /// A string with its escapes resolved; must be UTF-8.
  std::string string();
  /// Digits only: no sign, fraction, exponent or leading zero; must fit 63 bits.
  std::int64_t integer();
  /// Nothing but white space may be left.
  void expect_end();
  /// Throws at the current byte.
  [[noreturn]] void fail_here(const std::string& expected) const;

 private:
  void skip_space();
  unsigned hex4();
  void append_escape(std::string* out);

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

}  // namespace headway
