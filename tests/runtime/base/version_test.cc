// The release as numbers and as text.
#include "headway/version.h"

#include <gtest/gtest.h>

#include <string>

namespace headway {
namespace {

TEST(Version, TextIsWhatTheNumbersSay) {
  EXPECT_EQ(std::string(version()), std::to_string(HEADWAY_VERSION_MAJOR) + "." +
                                        std::to_string(HEADWAY_VERSION_MINOR) + "." +
                                        std::to_string(HEADWAY_VERSION_PATCH));
}

}  // namespace
}  // namespace headway
