// What every message of the library must be: one line, at most 300 characters, of what the caller did.
#pragma once

#include <string>

#include "headway/error.h"

namespace headway::fuzz {

/// What is wrong with it; empty: nothing.
inline std::string broken_message_rule(const Error& error) {
  constexpr std::size_t kMaxMessage = 300;
  const std::string text = error.what();
  if (error.code() == ErrorCode::kInternal) return "internal: " + text;
  if (text.find('\n') != std::string::npos) return "message of several lines: " + text;
  if (text.size() > kMaxMessage) return "message of " + std::to_string(text.size()) + " characters: " + text;
  return {};
}

}  // namespace headway::fuzz
