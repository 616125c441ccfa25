// --memory-limit of run and explain: what it takes, what it refuses in which words, and that it holds.
#include <gtest/gtest.h>

#include "tests/tools/command/command.h"
#include "tests/tools/command/onnx_bytes.h"

namespace headway {
namespace {

class MemoryLimitOption : public testing::Test {
 protected:
  MemoryLimitOption() {
    folder_.write("add.onnx", onnx_bytes::add_model());
    folder_.write("attention.onnx", onnx_bytes::attention_model());
  }
  void expect_runs(const std::string& arguments) {
    const CommandResult result = folder_.run(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.error;
    EXPECT_EQ(result.error, "") << arguments;
  }

  CommandFolder folder_;
};

// -1 was the largest number there is, and so was what no size_t holds.
TEST_F(MemoryLimitOption, TakesNothingButASize) {
  for (const char* command : {"run", "explain"}) {
    for (const char* bad : {"-1", "-5MB", "x", "5XB", "1e3", "1.5GB", "''", "' '", "MB", "99999999999999999999", "+5",
                            "18446744073709551616", "20000000TB", "0x10", "'5 5'"}) {
      expect_refused(folder_, std::string(command) + " add.onnx --memory-limit=" + bad, "--memory-limit");
    }
    expect_refused(folder_, std::string(command) + " add.onnx --memory-limit=-1",
                   "--memory-limit: is '-1', expected a number of bytes below 2^64, such as 500000000, 500MB or 2GiB");
    expect_refused(folder_, std::string(command) + " add.onnx --memory-limit", "--memory-limit");
    expect_refused(folder_, std::string(command) + " add.onnx --memory-limit 1GB --memory-limit 2GB", "--memory-limit");
  }
}

TEST_F(MemoryLimitOption, EnoughIsEnoughInEveryUnit) {
  for (const char* enough :
       {"1000000", "1000000b", "1000kb", "1000KB", "1MB", "1GB", "1TB", "1024kib", "1MiB", "1GiB", "1TiB", "'1 MB'"}) {
    expect_runs(std::string("run add.onnx --memory-limit ") + enough);
  }
  expect_runs("explain attention.onnx --memory-limit 1MB");
}

TEST_F(MemoryLimitOption, TooLittleNamesBothNumbers) {
  expect_stopped(folder_, "run add.onnx --memory-limit 0",
                 "needs 16 bytes for the constants of the graph, beside 0 bytes in use; the memory limit is 0 bytes");
  expect_stopped(folder_, "explain add.onnx --memory-limit 15b", "the memory limit is 15 bytes");
  expect_stopped(folder_, "run add.onnx --memory-limit 1kb", "; the memory limit is 1000 bytes");
  expect_stopped(folder_, "run add.onnx --memory-limit 1kib", "; the memory limit is 1024 bytes");
}

TEST_F(MemoryLimitOption, HoldsForInputsAndForIntermediates) {
  // [1, 2, 4096, 4] each of q, k and v is 128 KiB; unfused scores of [4096, 4096] are 128 MiB.
  expect_stopped(folder_, "run attention.onnx --shape q=1,2,4096,4 --memory-limit 100KiB",
                 "input 'q' needs 131072 bytes, the memory limit is 102400 bytes");
  expect_stopped(folder_, "run attention.onnx --unfused --shape q=1,2,4096,4 --memory-limit 64MiB",
                 "the memory limit is 67108864 bytes");
  expect_stopped(folder_, "explain attention.onnx --unfused --shape q=1,2,4096,4 --memory-limit 64MiB",
                 "the memory limit is 67108864 bytes");
  expect_runs("run attention.onnx --shape q=1,2,4096,4 --memory-limit 64MiB");  // fused, there are no such scores
}

TEST_F(MemoryLimitOption, WithoutOneTheMachineIsTheLimit) {
  expect_stopped(folder_, "run attention.onnx --shape q=1,2,1000000000,4", "the memory limit is ");
}

}  // namespace
}  // namespace headway
