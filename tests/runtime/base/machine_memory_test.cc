// The limits of control groups, from trees of files like those of the system.
#include "runtime/base/machine_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace headway {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

class ControlGroups : public ::testing::Test {
 protected:
  ControlGroups()
      : root_(fs::path(::testing::TempDir()) /
              ("groups_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::remove_all(root_);
  }
  ~ControlGroups() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  std::size_t limit() const { return control_group_bytes(root_.string()); }
  fs::path root_;
};

TEST_F(ControlGroups, NoFilesAreNoLimit) { EXPECT_EQ(limit(), kNone); }

TEST_F(ControlGroups, MaxIsNoLimit) {
  write("proc/self/cgroup", "0::/a");
  write("sys/fs/cgroup/a/memory.max", "max");
  EXPECT_EQ(limit(), kNone);
}

TEST_F(ControlGroups, TheLeastOfAGroupAndThoseAroundIt) {
  write("proc/self/cgroup", "0::/slice/unit");
  write("sys/fs/cgroup/slice/unit/memory.max", "9000");
  write("sys/fs/cgroup/slice/memory.max", "7000");
  EXPECT_EQ(limit(), 7000u);
}

TEST_F(ControlGroups, InAContainerTheMountIsTheGroup) {
  write("proc/self/cgroup", "0::/not/seen/from/inside");
  write("sys/fs/cgroup/memory.max", "5000");
  EXPECT_EQ(limit(), 5000u);
}

TEST_F(ControlGroups, VersionOne) {
  write("proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/box\n");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "4000");
  write("sys/fs/cgroup/x/memory.max", "1");  // of another controller
  EXPECT_EQ(limit(), 4000u);
}

TEST_F(ControlGroups, WordsThatAreNoNumberAreNoLimit) {
  write("proc/self/cgroup", "0::/a\nnonsense\n");
  write("sys/fs/cgroup/a/memory.max", "12x");
  EXPECT_EQ(limit(), kNone);
}

TEST(MachineMemory, IsSomething) {
  EXPECT_GT(machine_memory_bytes(), std::size_t{1} << 20);
  EXPECT_LT(machine_memory_bytes(), kNone);
}

}  // namespace
}  // namespace headway
