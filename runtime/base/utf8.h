// What is well-formed UTF-8 and what is not. Knows nothing of what the text is for.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headway {

/// Bytes of the UTF-8 sequence at `at`, which is inside `text`; 0 when there is none. Overlong forms, surrogates,
/// values beyond U+10FFFF and sequences cut short are none.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// Appends `code`, at most U+10FFFF, as UTF-8.
void append_utf8(unsigned code, std::string* out);

}  // namespace headway
