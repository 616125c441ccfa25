// The JSON subset of a safetensors header. See json_reader.h.
#include "runtime/base/json_reader.h"

#include <limits>

#include "headway/error.h"
#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "runtime/base/utf8.h"

namespace headway {

void JsonReader::fail_here(const std::string& expected) const {
  if (at_ >= text_.size()) {
    fail(ErrorCode::kInvalidArgument, printable(file_), ": header ends at byte ", text_.size(), ", expected ",
         expected);
  }
  fail(ErrorCode::kInvalidArgument, printable(file_), ": header byte ", at_, " is '", printable(text_.substr(at_, 1)),
       "', expected ", expected);
}

void JsonReader::skip_space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
}

bool JsonReader::accept(char symbol) {
  skip_space();
  if (at_ >= text_.size() || text_[at_] != symbol) return false;
  ++at_;
  return true;
}

void JsonReader::expect(char symbol) {
  if (!accept(symbol)) fail_here(std::string("'") + symbol + "'");
}

void JsonReader::expect_end() {
  skip_space();
  if (at_ != text_.size()) fail_here("only spaces after the last brace");
}

std::int64_t JsonReader::integer() {
  skip_space();
  const std::size_t begin = at_;
  std::int64_t value = 0;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
    const int digit = text_[at_] - '0';
    if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10) fail_here("a number that fits 63 bits");
    value = value * 10 + digit;
    ++at_;
  }
  if (at_ == begin) fail_here("a non-negative integer");
  if (text_[begin] == '0' && at_ - begin > 1) {
    at_ = begin;
    fail_here("an integer without leading zeros");
  }
  return value;
}

unsigned JsonReader::hex4() {
  unsigned code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) fail_here("four hexadecimal digits");
    code = code * 16 + static_cast<unsigned>(digit);
  }
  return code;
}

void JsonReader::append_escape(std::string* out) {
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (const std::size_t i = kEscapes.find(c); c != '\0' && i != std::string_view::npos) {
    out->push_back(kMeanings[i]);
    ++at_;
    return;
  }
  if (c != 'u') fail_here("an escape");
  ++at_;
  unsigned code = hex4();
  if (code >= 0xDC00 && code < 0xE000) fail_here("a high surrogate first");
  if (code >= 0xD800 && code < 0xDC00) {
    if (text_.substr(at_, 2) != "\\u") fail_here("a low surrogate");
    at_ += 2;
    const unsigned low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) fail_here("a low surrogate");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(code, out);
}

std::string JsonReader::string() {
  expect('"');
  std::string out;
  while (true) {
    if (at_ >= text_.size()) fail_here("the end of a string");
    const char c = text_[at_];
    if (c == '"') {
      ++at_;
      return out;
    }
    if (c == '\\') {
      ++at_;
      append_escape(&out);
      continue;
    }
    const std::size_t length = static_cast<unsigned char>(c) < 0x20 ? 0 : utf8_length(text_, at_);
    if (length == 0) fail_here("UTF-8 without control characters");
    out.append(text_.substr(at_, length));
    at_ += length;
  }
}

}  // namespace headway
