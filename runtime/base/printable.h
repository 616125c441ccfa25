// Text from files, fit for messages of one line: what is escaped, how long a name and a message may be. Knows nothing
// of what the text names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headway {

inline constexpr std::size_t kMaxNameChars = 80;
inline constexpr std::size_t kMaxMessageChars = 300;

/// `text` with control characters, NUL, bytes that are not UTF-8 and characters that break or reorder a line as \xNN.
/// What would be longer than `max_chars` bytes is shortened to its start and its end.
std::string printable(std::string_view text, std::size_t max_chars = kMaxNameChars);

/// printable() in single quotes.
std::string quoted(const std::string& name);

/// A whole message: one line, at most kMaxMessageChars.
std::string one_line(std::string_view message);

/// "a, b, c": as many of the items as fit about half a message, then how many more there are.
std::string listed(const std::vector<std::string>& items);

}  // namespace headway
