// What a call throws, as text to look into.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "headway/error.h"

namespace headway::testing {

/// The message of the Error that `work` throws; a failed test and "" when it throws none or another code.
template <class Work>
std::string error_of(Work&& work, ErrorCode code = ErrorCode::kInvalidArgument) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no headway::Error was thrown";
  return {};
}

/// The text holds the part, or the test prints both.
inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in '" << text << "'";
}

inline void expect_lacks(const std::string& text, const std::string& part) {
  EXPECT_EQ(text.find(part), std::string::npos) << "'" << part << "' is in '" << text << "'";
}

}  // namespace headway::testing
