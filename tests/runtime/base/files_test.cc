// Files as they are opened and written by everybody: what is no file to read, and what writing leaves behind.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/atomic_file.h"
#include "runtime/base/mapped_file.h"
#include "tests/runtime/error_of.h"

namespace headway {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::expect_contains;

/// A folder of its own, gone afterwards.
class Files : public ::testing::Test {
 protected:
  Files() : folder_(fs::path(::testing::TempDir()) / ("headway-files-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string refusal(const std::string& file, ErrorCode code = ErrorCode::kIo) const {
    return error_of([&] { MappedFile{file}; }, code);
  }

  fs::path folder_;
};

TEST_F(Files, NothingButRegularFilesIsRead) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  expect_contains(refusal(path("pipe")), "pipe: is a pipe, not a regular file");  // and did not wait for a writer
  expect_contains(refusal("/dev/zero"), "/dev/zero: is a device, not a regular file");
  expect_contains(refusal(folder_.string()), "is a folder, not a regular file");
  expect_contains(refusal(path("missing")), "missing: cannot open: No such file");
  const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path("socket").size(), sizeof address.sun_path);
  std::strcpy(address.sun_path, path("socket").c_str());
  ASSERT_EQ(::bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  expect_contains(refusal(path("socket")), "socket: cannot open: is a socket");
  ::close(listening);
  expect_contains(refusal(std::string("a\0b", 3), ErrorCode::kInvalidArgument), "a\\x00b: holds a NUL");
}

TEST_F(Files, GitLfsPointersAreNamed) {
  std::ofstream(path("model")) << "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n";
  expect_contains(refusal(path("model"), ErrorCode::kInvalidArgument), "model: is a Git LFS pointer of 63 bytes");
}

TEST_F(Files, AWrittenFileAppearsWhole) {
  AtomicFile file(path("out"));
  file.write("half");
  EXPECT_FALSE(fs::exists(path("out")));
  file.write(" and half");
  file.commit();
  EXPECT_EQ(read("out"), "half and half");
  EXPECT_EQ(names(), (std::vector<std::string>{"out"}));
}

TEST_F(Files, AFileThatIsNotCommittedLeavesNothing) {
  std::ofstream(path("out")) << "old";
  { AtomicFile(path("out")).write("new"); }
  EXPECT_EQ(read("out"), "old");
  EXPECT_EQ(names(), (std::vector<std::string>{"out"}));
}

TEST_F(Files, LinksStayAndTheirTargetsAreWritten) {
  fs::create_directory(path("below"));
  std::ofstream(path("below/target")) << "old";
  fs::create_symlink("below/target", path("link"));
  fs::create_symlink("link", path("second"));
  fs::create_symlink(path("below/new"), path("dangling"));
  for (const auto& [link, target] : {std::pair("second", "below/target"), {"dangling", "below/new"}}) {
    AtomicFile file(path(link));
    file.write(link);
    file.commit();
    EXPECT_TRUE(fs::is_symlink(path(link)));
    EXPECT_EQ(read(target), link);
  }
  EXPECT_TRUE(fs::is_symlink(path("link")));
  fs::create_symlink("loop", path("loop"));
  expect_contains(error_of([&] { AtomicFile{path("loop")}; }, ErrorCode::kIo), "loop: cannot write: Too many levels");
}

TEST_F(Files, ALookBeforeWritingFindsWhatCannotBeWritten) {
  check_writable(path("out"));
  EXPECT_EQ(names(), std::vector<std::string>());
  std::ofstream(path("old")) << "old";
  check_writable(path("old"));
  EXPECT_EQ(read("old"), "old");
  expect_contains(error_of([&] { check_writable(path("no/such/file")); }, ErrorCode::kIo), "No such file");
  expect_contains(error_of([&] { check_writable(path("old/file")); }, ErrorCode::kIo), "Not a directory");
  expect_contains(error_of([&] { check_writable(path(std::string(300, 'n'))); }, ErrorCode::kIo), "name too long");
  expect_contains(error_of([&] { check_writable(folder_.string()); }), "is a folder, expected a file name");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  check_writable(path("pipe"));  // and did not wait for a reader
}

TEST_F(Files, ASignalHandlerCanRemoveWhatIsHalfWritten) {
  AtomicFile first(path("first")), second(path("second"));
  first.write("x");
  EXPECT_EQ(names().size(), 2u);
  remove_temporary_files();
  EXPECT_EQ(names(), std::vector<std::string>());
  EXPECT_THROW(first.commit(), Error);
  { AtomicFile(path("third")).write("x"); }
  EXPECT_EQ(names(), std::vector<std::string>());
}

TEST_F(Files, ANameThatAKilledProcessLeftIsNoObstacle) {
  // Names count up within a process: take the next ones.
  std::string taken;
  {
    const AtomicFile file(path("x"));
    taken = names().at(0);
  }
  const std::size_t dash = taken.rfind('-');
  const unsigned next = static_cast<unsigned>(std::stoul(taken.substr(dash + 1))) + 1;
  std::ofstream(path(taken.substr(0, dash + 1) + std::to_string(next))) << "left";
  AtomicFile file(path("x"));
  file.write("new");
  file.commit();
  EXPECT_EQ(read("x"), "new");
}

}  // namespace
}  // namespace headway
