// JSON text: names come from model files, so any byte may turn up in them.
#include "runtime/base/json_text.h"

#include <charconv>
#include <cmath>

#include "runtime/base/utf8.h"

namespace headway {
namespace {

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
