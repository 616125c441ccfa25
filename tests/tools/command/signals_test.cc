// Closed, full and broken streams, signals, limits of the system: an exit code, a line, and no file half written.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/command/command.h"
#include "tests/tools/command/onnx_bytes.h"

namespace headway {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Names = std::vector<std::string>;

constexpr const char* kSweep =
    "\"$HEADWAY\" sweep --embed-dim 8 --seq 4 --heads 1,2 --rounds 1 --threads 1 --json s.json --csv s.csv ";

class Streams : public testing::Test {
 protected:
  Streams() { folder_.write("add.onnx", onnx_bytes::add_model()); }

  /// The sweep has come to its end and into its files.
  void expect_sweep() const {
    EXPECT_EQ(folder_.files(), (Names{"add.onnx", "s.csv", "s.json"}));
    EXPECT_EQ(json::parse(folder_.read("s.json")).at("rows").size(), 2u);
    EXPECT_EQ(folder_.read("s.csv").rfind("heads,", 0), 0u);
  }
  static void expect_last_line(const CommandResult& result, const std::string& says) {
    const std::size_t line = result.error.rfind("headway: ");
    ASSERT_NE(line, std::string::npos) << result.error;
    EXPECT_NE(result.error.find(says, line), std::string::npos) << result.error;
  }

  CommandFolder folder_;
};

TEST_F(Streams, ASweepIsWrittenWhenTheStandardOutputIsClosed) {
  const CommandResult result = folder_.shell(std::string(kSweep) + ">&-");
  EXPECT_EQ(result.exit_code, 2) << result.error;
  expect_last_line(result, "cannot write to the standard output: Bad file descriptor");
  expect_sweep();
}

TEST_F(Streams, ASweepIsWrittenWhenTheStandardOutputIsFull) {
  const CommandResult result = folder_.shell(std::string(kSweep) + ">/dev/full");
  EXPECT_EQ(result.exit_code, 2) << result.error;
  expect_last_line(result, "cannot write to the standard output: No space left");
  expect_sweep();
}

TEST_F(Streams, ASweepIsWrittenWhenNobodyReadsThePipe) {
  const CommandResult result = folder_.shell("{ sleep 0.3; " + std::string(kSweep) +
                                             "; echo $? >../code$$; } | true; cat ../code$$; rm ../code$$");
  EXPECT_EQ(result.out, "2\n") << result.error;
  expect_last_line(result, "cannot write to the standard output: Broken pipe");
  expect_sweep();
}

TEST_F(Streams, AClosedStandardErrorStopsNothing) {
  const CommandResult result = folder_.shell(std::string(kSweep) + "2>&-");
  EXPECT_EQ(result.exit_code, 0);
  expect_sweep();
  EXPECT_EQ(folder_.shell("\"$HEADWAY\" run nowhere.onnx 2>&-").exit_code, 2);
  EXPECT_EQ(folder_.shell("\"$HEADWAY\" run nowhere.onnx 2>/dev/full").exit_code, 2);
}

TEST_F(Streams, WithAllStreamsClosedNoFileTakesTheirPlace) {
  EXPECT_EQ(folder_.shell(std::string(kSweep) + "<&- >&- 2>&-").exit_code, 2);
  expect_sweep();
}

TEST_F(Streams, ReportsForAClosedStandardOutputFail) {
  EXPECT_EQ(folder_.shell("\"$HEADWAY\" --help >&-").exit_code, 2);
  EXPECT_EQ(folder_.shell("\"$HEADWAY\" run add.onnx >/dev/full").exit_code, 2);
  EXPECT_EQ(folder_.shell("\"$HEADWAY\" explain add.onnx >&-").exit_code, 2);
  EXPECT_EQ(folder_.shell("\"$HEADWAY\" profile --embed-dim 8 --seq 4 --heads 1 --rounds 1 --json - >&-").exit_code, 2);
}

TEST_F(Streams, OutputsThatCannotBeAreRefusedBeforeTheWork) {
  fs::create_directory(folder_.path("folder"));
  const std::string sweep = "sweep --embed-dim 64 --seq 64 --heads 1 --rounds 1000 --json ";
  // One line and no progress: nothing was measured.
  expect_refused(folder_, sweep + "folder", "folder: is a folder");
  expect_refused(folder_, sweep + std::string(300, 'n'), "cannot write: File name too long");
  expect_refused(folder_, sweep + "add.onnx/s.json", "cannot write: Not a directory");
  expect_refused(folder_, sweep + "/proc/s.json", "/proc/s.json: cannot write");
  fs::create_symlink("loop", folder_.path("loop"));
  expect_refused(folder_, sweep + "loop", "cannot write: Too many levels");
  for (const char* option : {"--out", "--trace"}) {
    expect_refused(folder_, std::string("run add.onnx ") + option + " folder", "folder: is a folder");
  }
}

TEST_F(Streams, OutFollowsALink) {
  folder_.write("target", "old");
  fs::create_symlink("target", folder_.path("link"));
  ASSERT_EQ(folder_.run("run add.onnx --shape x=2,4 --out link").exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_.path("link")));
  EXPECT_EQ(load(folder_, "target", "y").size(), 8u);
  EXPECT_EQ(folder_.files(), (Names{"add.onnx", "link", "target"}));
}

TEST_F(Streams, AFullDiskIsAFailureOfTheSystem) {
  expect_stopped(folder_, "run add.onnx --out /dev/full", "/dev/full: cannot write: No space left");
}

TEST_F(Streams, SignalsEndItWith128AndTheirNumber) {
  const std::string sweep = "\"$HEADWAY\" sweep --embed-dim 64 --seq 64 --heads 1 --rounds 1000 --json s.json";
  for (const auto& [signal, code] : {std::pair("INT", 130), {"TERM", 143}, {"HUP", 129}}) {
    const CommandResult result = folder_.shell("timeout --preserve-status -s " + std::string(signal) + " 1 " + sweep);
    EXPECT_EQ(result.exit_code, code) << result.error;
    expect_last_line(result, std::string("stopped by SIG") + signal);
    EXPECT_EQ(folder_.files(), Names{"add.onnx"});
  }
}

TEST_F(Streams, AnIgnoredSignalStaysIgnored) {
  const CommandResult result =
      folder_.shell("trap '' TERM; " + std::string(kSweep) + "& sleep 0.05; kill -TERM $!; wait $!");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error.find("stopped by"), std::string::npos) << result.error;
  expect_sweep();
}

TEST_F(Streams, TheLimitOfAFilesSizeLeavesNoTemporaryFile) {
  const std::string run = "ulimit -f 8; \"$HEADWAY\" run add.onnx --shape x=40000,4 --out out";
  CommandResult result = folder_.shell(run);
  EXPECT_EQ(result.exit_code, 153) << result.out << result.error;
  expect_last_line(result, "stopped by SIGXFSZ");
  EXPECT_EQ(folder_.files(), Names{"add.onnx"});
  result = folder_.shell("trap '' XFSZ; " + run);
  EXPECT_EQ(result.exit_code, 2) << result.out << result.error;
  expect_last_line(result, "out: cannot write: File too large");
  EXPECT_EQ(folder_.files(), Names{"add.onnx"});
}

TEST_F(Streams, MemoryThatCannotBeHadIsOneLine) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more than any limit";
#endif
  const CommandResult result =
      folder_.shell("ulimit -v 2000000; \"$HEADWAY\" run add.onnx --threads 1 --shape x=1000000000,4 --out out");
  EXPECT_EQ(result.exit_code, 2) << result.out << result.error;
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  EXPECT_EQ(folder_.files(), Names{"add.onnx"});
}

TEST_F(Streams, WhatIsNoRegularFileIsRefusedByEveryReader) {
  ASSERT_EQ(::mkfifo(folder_.path("pipe").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(folder_.path("pipe.npy").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", folder_.path("zero.npy"));
  fs::create_directory(folder_.path("folder.npy"));
  fs::create_directory(folder_.path("cases"));
  ASSERT_EQ(::mkfifo(folder_.path("cases/configs.json").c_str(), 0600), 0);
  expect_refused(folder_, "run pipe", "pipe: is a pipe, not a regular file");
  expect_refused(folder_, "run /dev/zero", "/dev/zero: is a device");
  expect_refused(folder_, "run .", ".: is a folder");
  expect_refused(folder_, "explain pipe", "pipe: is a pipe");
  expect_stopped(folder_, "run add.onnx --inputs pipe", "pipe: is a pipe");
  expect_stopped(folder_, "run add.onnx --inputs /dev/zero", "/dev/zero: is a device");
  expect_stopped(folder_, "run add.onnx --inputs x=pipe.npy", "pipe.npy: is a pipe");
  expect_stopped(folder_, "run add.onnx --inputs x=zero.npy", "zero.npy: is a device");
  expect_stopped(folder_, "run add.onnx --inputs x=folder.npy", "folder.npy: is a folder");
  expect_stopped(folder_, "run add.onnx --check pipe", "pipe: is a pipe");
  expect_refused(folder_, "attend --input pipe", "pipe: is a pipe");
  expect_refused(folder_, "conformance cases", "configs.json: is a pipe");
}

TEST_F(Streams, GitLfsPointersAreNamedByEveryReader) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n";
  for (const char* file : {"model.onnx", "in.safetensors", "x.npy"}) folder_.write(file, pointer);
  expect_refused(folder_, "run model.onnx", "model.onnx: is a Git LFS pointer");
  expect_refused(folder_, "attend --input in.safetensors", "in.safetensors: is a Git LFS pointer");
  expect_stopped(folder_, "run add.onnx --inputs x=x.npy", "x.npy: is a Git LFS pointer");
}

}  // namespace
}  // namespace headway
