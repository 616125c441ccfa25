// The program in C beside this file, and DLPack's own header before ours.
#include <gtest/gtest.h>

#include "headway/headway.h"

extern "C" int decode_in_c(void);

namespace headway::testing {
namespace {

TEST(CDecode, AStepWrittenInC) { EXPECT_EQ(decode_in_c(), 0) << "a line of c11.c, " << headway_last_error(); }

TEST(CDecode, TheVersionIsTheHeaders) {
  EXPECT_EQ(headway_version(), std::to_string(HEADWAY_VERSION_MAJOR) + "." + std::to_string(HEADWAY_VERSION_MINOR) +
                                   "." + std::to_string(HEADWAY_VERSION_PATCH));
}

}  // namespace
}  // namespace headway::testing
