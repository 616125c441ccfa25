// Writing strings and numbers as JSON, whatever the bytes and whatever the locale. Knows nothing of documents.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headway {

/// Appends `text` in quotes. Control characters are escaped; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string_view text, std::string* json);
/// Appends a finite number with as many digits as it takes to read it back; anything else as 0.
void append_json_number(double value, std::string* json);
void append_json_number(std::int64_t value, std::string* json);

}  // namespace headway
