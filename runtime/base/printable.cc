// Escapes from both ends towards the middle, so that the cost of a long name is that of what is shown. See printable.h.
#include "runtime/base/printable.h"

#include <algorithm>

#include "runtime/base/utf8.h"

namespace headway {
namespace {

constexpr std::string_view kEllipsis = "…";

// Characters that end a line, hide or change the direction of what follows: C1 controls, zero-width characters and
// marks (U+200B to U+200F), separators and embeddings (U+2028 to U+202E), isolates (U+2066 to U+2069), byte order mark.
bool is_hidden(std::string_view character) {
  if (character.size() == 2) return character[0] == '\xC2' && static_cast<unsigned char>(character[1]) < 0xA0;
  if (character.size() != 3) return false;
  const unsigned last = static_cast<unsigned char>(character[2]);
  if (character.substr(0, 2) == "\xE2\x80") return (last >= 0x8B && last <= 0x8F) || (last >= 0xA8 && last <= 0xAE);
  if (character.substr(0, 2) == "\xE2\x81") return last >= 0xA6 && last <= 0xA9;
  return character == "\xEF\xBB\xBF";
}

// One character, or the escape of one that is not shown.
std::string shown(std::string_view character) {
  const unsigned first = static_cast<unsigned char>(character[0]);
  const bool control = character.size() == 1 && (first < 0x20 || first >= 0x7F);
  if (!control && !is_hidden(character)) return std::string(character);
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : character) {
    const unsigned byte = static_cast<unsigned char>(c);
    out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

// The character at `at`; a byte that begins none is one of its own.
std::string_view character_at(std::string_view text, std::size_t at) {
  return text.substr(at, std::max<std::size_t>(utf8_length(text, at), 1));
}

// The character that ends at `end`.
std::string_view character_before(std::string_view text, std::size_t end) {
  for (std::size_t length = 1; length <= 4 && length <= end; ++length) {
    if (utf8_length(text.substr(0, end), end - length) == length) return text.substr(end - length, length);
  }
  return text.substr(end - 1, 1);
}

// As much of the start as `max_chars` take; `*end` is where it stops.
std::string start_of(std::string_view text, std::size_t max_chars, std::size_t* end) {
  std::string out;
  for (*end = 0; *end < text.size();) {
    const std::string_view character = character_at(text, *end);
    const std::string next = shown(character);
    if (out.size() + next.size() > max_chars) break;
    out += next;
    *end += character.size();
  }
  return out;
}

std::string end_of(std::string_view text, std::size_t max_chars) {
  std::vector<std::string> reversed;
  std::size_t chars = 0;
  for (std::size_t at = text.size(); at > 0;) {
    const std::string_view character = character_before(text, at);
    reversed.push_back(shown(character));
    chars += reversed.back().size();
    if (chars > max_chars) {
      reversed.pop_back();
      break;
    }
    at -= character.size();
  }
  std::string out;
  for (auto part = reversed.rbegin(); part != reversed.rend(); ++part) out += *part;
  return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_chars) {
  std::size_t end = 0;
  std::string whole = start_of(text, max_chars, &end);
  if (end == text.size()) return whole;
  const std::size_t half = (max_chars - kEllipsis.size()) / 2;
  return start_of(text, half, &end) + std::string(kEllipsis) + end_of(text, half);
}

std::string quoted(const std::string& name) { return '\'' + printable(name) + '\''; }

std::string one_line(std::string_view message) { return printable(message, kMaxMessageChars); }

std::string listed(const std::vector<std::string>& items) {
  constexpr std::size_t kMaxListChars = 180;  // the rest of a message is a path and a sentence
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0 && out.size() + items[i].size() > kMaxListChars) {
      return out + " and " + std::to_string(items.size() - i) + " more";
    }
    out += (i == 0 ? "" : ", ") + items[i];
  }
  return out;
}

}  // namespace headway
