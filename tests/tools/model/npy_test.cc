// .npy inputs of headway run: every form of a header that NumPy writes, and the files that are none.
#include <gtest/gtest.h>

#include "tests/tools/command/command.h"
#include "tests/tools/command/onnx_bytes.h"

namespace headway {
namespace {

/// A file of `version`, whose header is `dict`.
std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(dict.size() >> (8 * i));
  return file + dict + data;
}

std::string floats_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

const std::string kRow = floats_of({10, 20, 30, 40});
constexpr const char* kDict = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4), }";

class Npy : public testing::Test {
 protected:
  Npy() { folder_.write("add.onnx", onnx_bytes::add_model()); }
  void expect_read(const std::string& file) {
    folder_.write("x.npy", file);
    const CommandResult result = folder_.run("run add.onnx --inputs x=x.npy --out y");
    ASSERT_EQ(result.exit_code, 0) << file << result.error;
    EXPECT_EQ(load(folder_, "y", "y"), (std::vector<float>{11, 22, 33, 44})) << file;
  }
  void expect_not_read(const std::string& file, const std::string& says) {
    folder_.write("x.npy", file);
    expect_stopped(folder_, "run add.onnx --inputs x=x.npy", "x.npy: " + says);
  }

  CommandFolder folder_;
};

TEST_F(Npy, EveryFormOfAHeaderIsRead) {
  for (const int version : {1, 2, 3}) expect_read(npy(kDict, kRow, version));
  for (const char* dict : {
           "{'shape': (1, 4), 'fortran_order': False, 'descr': '<f4'}",
           "{\"fortran_order\":False,\"descr\":\"<f4\",\"shape\":(1,4,)}",
           "  {  'descr'  :  '<f4'  ,  'fortran_order'  :  False  ,  'shape'  :  (  1  ,  4  )  ,  }   \n",
           "{'descr': '<f4',\n 'fortran_order': False,\n\t'shape': (1, 4)}\r\n",
       }) {
    expect_read(npy(dict, kRow));
  }
  // Two bytes cannot say how long this header is.
  expect_read(npy(kDict + std::string(70'000, ' ') + "\n", kRow, 2));
}

TEST_F(Npy, FortranOrderOfOneDimIsNoOrder) {
  using namespace onnx_bytes;
  folder_.write("add.onnx", model(node("Add", {"x", "bias"}, {"y"}) + initializer("bias", {4}, {1, 2, 3, 4}) +
                                  input("x", kFloat, {"n"}) + output("y", kFloat, {"4"})));
  expect_read(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (4,), }", kRow));
  expect_not_read(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", kRow),
                  "is in Fortran order (fortran_order is True)");
}

TEST_F(Npy, HeadersThatAreNone) {
  const auto with = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return npy("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}", kRow);
  };
  expect_not_read("", "not an .npy file");
  expect_not_read("\x93NUMPX\x01", "not an .npy file");
  expect_not_read(std::string("\x93NUMPY\x01\0", 8), "has 8 bytes, expected at least 10");
  expect_not_read(npy(kDict, kRow, 4), "is of .npy version 4.0");
  expect_not_read(npy(kDict, "").substr(0, 30), "its header has 59 bytes, the file has 20 after");
  expect_not_read(npy("", kRow), "byte 10 is the header's end, expected '{'");
  expect_not_read(npy("{'descr': '<f4', 'shape': (1, 4)}", kRow), "its header has no 'fortran_order'");
  expect_not_read(npy("{'descr': '<f4', 'descr': '<f4'}", kRow), "its header has 'descr' twice");
  expect_not_read(npy("{'order': 1}", kRow), "its header has the key 'order'");
  expect_not_read(npy(std::string(kDict) + "x", kRow), "byte 69 is 'x', expected nothing but spaces");
  expect_not_read(npy("{'descr': '<f4' 'shape': ()}", kRow), "byte 26 is ''', expected '}'");
  expect_not_read(with("'<f4", "False", "()"), "byte");
  expect_not_read(with("'<\\x664'", "False", "(1, 4)"), "byte 22 is '\\', expected a string without escapes");
  expect_not_read(with("[('a', '<f4')]", "False", "(1, 4)"), "its elements have fields of their own");
  expect_not_read(with("'>f4'", "False", "(1, 4)"), "elements of type '>f4' are not supported");
  expect_not_read(with("'<f4'", "false", "(1, 4)"), "byte 44 is 'f', expected True or False");
  expect_not_read(with("'<f4'", "False", "[1, 4]"), "byte 60 is '[', expected '('");
  expect_not_read(with("'<f4'", "False", "(4)"), "byte 62 is ')', expected ',' after the only size");
  expect_not_read(with("'<f4'", "False", "(1 4)"), "byte 63 is '4', expected ','");
  expect_not_read(with("'<f4'", "False", "(,)"), "byte 61 is ',', expected a size");
  expect_not_read(with("'<f4'", "False", "(-1, 4)"), "byte 61 is '-', expected a size");
  expect_not_read(with("'<f4'", "False", "(01, 4)"), "byte 61 is '0', expected a size without leading zeros");
  expect_not_read(with("'<f4'", "False", "(1.0, 4)"), "byte 62 is '.', expected ','");
  expect_not_read(with("'<f4'", "False", "(1, 4"), "byte");
  expect_not_read(with("'<f4'", "False", "(1,1,1,1,1,1,1,1,4)"), "its shape has more than 8 dims");
}

TEST_F(Npy, SizesThatDoNotFit) {
  const auto shaped = [](const std::string& shape) {
    return npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}", kRow);
  };
  expect_not_read(shaped("(1, 5)"), "has 16 bytes of elements, expected 20 for [1, 5] of f32");
  expect_not_read(shaped("(1, 3)"), "has 16 bytes of elements, expected 12 for [1, 3] of f32");
  expect_not_read(shaped("(9223372036854775808,)"), "byte 79 is '8', expected a size that fits 63 bits");
  expect_not_read(shaped("(9223372036854775807, 4)"), "");
  expect_not_read(shaped("(4611686018427387904, 1)"), "the bytes of a tensor of f32");
  expect_not_read(shaped("(4294967296, 4294967296)"), "");
  expect_not_read(shaped("(0, 9223372036854775807, 9223372036854775807)"), "");
}

TEST_F(Npy, BoolsAreZeroOrOne) {
  expect_not_read(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1, 4)}", std::string("\0\1\2\1", 4)),
                  "holds 2 at element 2, expected a bool");
}

TEST_F(Npy, LongHeadersAreReadInTheirLength) {
  const std::string longest(60'000, '[');
  expect_not_read(npy("{'descr': '" + longest + "', 'fortran_order': False, 'shape': (1, 4)}", kRow),
                  "elements of type '[[[[[[[");
  expect_not_read(npy("{'descr': " + longest, kRow), "its elements have fields");
  expect_not_read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string(60'000, '('), kRow),
                  "byte 61 is '(', expected a size");
}

TEST_F(Npy, ANulDoesNotCutTheMessage) {
  expect_not_read(npy(std::string("{'descr': '<f4', 'fortran_order': False, 'shape': (1\0, 4)}", 58), kRow),
                  "byte 62 is '\\x00', expected ',' after the only size");
}

}  // namespace
}  // namespace headway
