// CPUs by affinity and by quota.
#include "runtime/threads/usable_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace headway {
namespace {

TEST(UsableCpus, FollowTheAffinityOfTheThread) {
  EXPECT_GE(usable_cpus(), 1);
  int cpus = 0;
  std::thread([&] {
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    cpus = usable_cpus();
  }).join();
  EXPECT_EQ(cpus, 1);
}

class Quota : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "headway-cgroup-" + std::to_string(::getpid());
    std::filesystem::create_directories(root_ + "/cpu/docker/x");
    std::filesystem::create_directories(root_ + "/a/b");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) { std::ofstream(root_ + file) << text; }

  std::string root_;
};

TEST_F(Quota, Version2TakesTheLeastOfTheGroupsAround) {
  EXPECT_EQ(cgroup_cpus("0::/a/b\n", root_), 0) << "no file is no quota";
  write("/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpus("0::/a/b\n", root_), 0);
  write("/a/cpu.max", "350000 100000\n");
  EXPECT_EQ(cgroup_cpus("0::/a/b\n", root_), 4);
  write("/a/b/cpu.max", "20000 100000\n");
  EXPECT_EQ(cgroup_cpus("0::/a/b\n", root_), 1);
  EXPECT_EQ(cgroup_cpus("0::/a\n", root_), 4);
  write("/cpu.max", "200000 100000\n");
  EXPECT_EQ(cgroup_cpus("0::/\n", root_), 2);
  EXPECT_EQ(cgroup_cpus("0::/elsewhere\n", root_), 2);
}

TEST_F(Quota, Version1) {
  const std::string groups = "5:cpuset:/other\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/\n";
  EXPECT_EQ(cgroup_cpus(groups, root_), 0);
  write("/cpu/docker/x/cpu.cfs_quota_us", "-1\n");
  write("/cpu/docker/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpus(groups, root_), 0);
  write("/cpu/docker/x/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(cgroup_cpus(groups, root_), 2);
}

TEST_F(Quota, NonsenseIsNoQuota) {
  write("/cpu.max", "lots and lots");
  for (const char* groups : {"", "::", "0::", "nothing", "0::relative", "0::///\n"}) {
    EXPECT_EQ(cgroup_cpus(groups, root_), 0) << groups;
  }
}

}  // namespace
}  // namespace headway
