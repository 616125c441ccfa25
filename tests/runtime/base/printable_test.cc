// Names and messages: what is escaped, how what is long is shortened.
#include "runtime/base/printable.h"

#include <gtest/gtest.h>

#include "runtime/base/utf8.h"

namespace headway {
namespace {

TEST(Printable, TextIsLeftAlone) {
  EXPECT_EQ(printable("encoder.layer.0/MatMul_1"), "encoder.layer.0/MatMul_1");
  EXPECT_EQ(printable("größe 重み"), "größe 重み");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ControlCharactersNulAndBadUtf8AreEscaped) {
  EXPECT_EQ(printable(std::string_view("a\0b\nc\x7F", 6)), "a\\x00b\\x0Ac\\x7F");
  EXPECT_EQ(printable("\xC0\xAF|\xED\xA0\x80|\xFF|\xC3"), "\\xC0\\xAF|\\xED\\xA0\\x80|\\xFF|\\xC3");
  EXPECT_EQ(printable("\x1B[31m"), "\\x1B[31m");
}

TEST(Printable, CharactersThatBreakOrReorderALineAreEscaped) {
  EXPECT_EQ(printable("a\u2028b"), "a\\xE2\\x80\\xA8b");
  EXPECT_EQ(printable("a\u202Eb"), "a\\xE2\\x80\\xAEb");
  EXPECT_EQ(printable("a\u0085b"), "a\\xC2\\x85b");
  EXPECT_EQ(printable("\uFEFFb"), "\\xEF\\xBB\\xBFb");
  EXPECT_EQ(printable("a\u00A0\u2019"), "a\u00A0\u2019") << "their neighbours are not";
}

TEST(Printable, LongNamesKeepStartAndEnd) {
  const std::string name = "start" + std::string(60'000, 'x') + "end";
  const std::string shown = printable(name);
  EXPECT_LE(shown.size(), kMaxNameChars);
  EXPECT_GE(shown.size(), kMaxNameChars - 4);
  EXPECT_TRUE(shown.starts_with("startx"));
  EXPECT_TRUE(shown.ends_with("xend"));
  EXPECT_NE(shown.find("…"), std::string::npos);
  EXPECT_EQ(printable(std::string(kMaxNameChars, 'x')), std::string(kMaxNameChars, 'x'));
}

TEST(Printable, ShorteningCutsNoCharacter) {
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::string name(shift, 'x');
    for (int i = 0; i < 100; ++i) name += "重";
    name += std::string(shift, 'y');
    const std::string shown = printable(name);
    EXPECT_LE(shown.size(), kMaxNameChars);
    EXPECT_EQ(shown.find('\\'), std::string::npos) << shown;
    for (std::size_t at = 0; at < shown.size();) {
      const std::size_t length = utf8_length(shown, at);
      ASSERT_GT(length, 0u) << shown;
      at += length;
    }
  }
  EXPECT_LE(printable(std::string(1000, '\0')).size(), kMaxNameChars) << "escapes count";
}

TEST(Printable, MessagesAreOneLineOfAtMost300) {
  EXPECT_EQ(one_line("a\nb"), "a\\x0Ab");
  const std::string message = one_line("model.onnx: " + std::string(5000, '\n') + " expected 7");
  EXPECT_LE(message.size(), 300u);
  EXPECT_TRUE(message.starts_with("model.onnx: ")) << message;
  EXPECT_TRUE(message.ends_with(" expected 7")) << message;
}

TEST(Printable, ListsSayHowManyTheyLeaveOut) {
  EXPECT_EQ(listed({}), "");
  EXPECT_EQ(listed({"a", "b"}), "a, b");
  const std::vector<std::string> many(100, "operator");
  const std::string text = listed(many);
  EXPECT_LT(text.size(), 200u);
  EXPECT_TRUE(text.starts_with("operator, operator, "));
  EXPECT_NE(text.find(" and 82 more"), std::string::npos) << text;
}

TEST(Utf8, RoundTripsEveryRange) {
  for (const unsigned code : {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    append_utf8(code, &text);
    EXPECT_EQ(utf8_length(text, 0), text.size()) << code;
    if (text.size() > 1) {
      EXPECT_EQ(utf8_length(text.substr(0, text.size() - 1), 0), 0u) << "cut " << code;
    }
  }
}

}  // namespace
}  // namespace headway
