// JSON text: names come from model files, so any byte may turn up in them.
#include "runtime/base/json_text.h"

#include <charconv>
#include <cmath>

namespace headway {
namespace {

unsigned byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

/// Bytes of the UTF-8 sequence at `i`, 0 when there is none. Overlong forms, surrogates and values beyond U+10FFFF
/// are none: the second byte's range depends on the first (Unicode, table 3-7).
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const unsigned first = byte_at(text, i);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  }
  if (length == 0 || i + length > text.size()) return 0;
  if (byte_at(text, i + 1) < low || byte_at(text, i + 1) > high) return 0;
  for (std::size_t k = 2; k < length; ++k) {
    if ((byte_at(text, i + k) & 0xC0) != 0x80) return 0;
  }
  return length;
}

void append_ascii(char c, std::string* json) {
  constexpr char kHex[] = "0123456789abcdef";
  if (c == '"' || c == '\\') {
    *json += '\\';
    *json += c;
  } else if (static_cast<unsigned char>(c) < 0x20) {
    *json += "\\u00";
    *json += kHex[static_cast<unsigned char>(c) >> 4];
    *json += kHex[static_cast<unsigned char>(c) & 15];
  } else {
    *json += c;
  }
}

template <class Number>
void append_chars(Number value, std::string* json) {
  char text[40];
  const auto result = std::to_chars(text, text + sizeof(text), value);
  json->append(text, result.ptr);
}

}  // namespace

void append_json_string(std::string_view text, std::string* json) {
  *json += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 1) {
      append_ascii(text[i], json);
    } else if (length == 0) {
      *json += "\xEF\xBF\xBD";
    } else {
      json->append(text.substr(i, length));
    }
    i += length == 0 ? 1 : length;
  }
  *json += '"';
}

void append_json_number(double value, std::string* json) { append_chars(std::isfinite(value) ? value : 0.0, json); }

void append_json_number(std::int64_t value, std::string* json) { append_chars(value, json); }

}  // namespace headway
