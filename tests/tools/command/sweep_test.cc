// headway sweep with saved sweeps: comparisons, the range that is as good as the fastest, the page.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headway_test_paths.h"
#include "tests/tools/command/command.h"

namespace headway {
namespace {

using nlohmann::json;

/// A sweep whose rounds are these times one by one, with 5 % of scatter that is always the same.
json saved_sweep(const std::vector<std::int64_t>& heads, const std::vector<double>& milliseconds, double slower = 1,
                 double clock = 1) {
  json rows = json::array();
  for (std::size_t i = 0; i < heads.size(); ++i) {
    std::vector<double> seconds, peaks;
    for (int round = 0; round < 9; ++round) {
      const double scatter = 1 + 0.05 * ((round * 7 + static_cast<int>(i) * 3) % 9 - 4) / 4;
      seconds.push_back(milliseconds[i] * 1e-3 * scatter * slower / clock);
      peaks.push_back(100 * clock);
    }
    const double median = milliseconds[i] * 1e-3 * slower / clock;
    // Projections take the same time at every h, the softmax what is left.
    const double projections = 0.8 * milliseconds[0] * 1e-3 * slower / clock;
    rows.push_back({{"heads", heads[i]},
                    {"head_dim", 512 / heads[i]},
                    {"parameters", 1050624},
                    {"matmul_flops_nominal", 671088640},
                    {"matmul_flops_executed", 671088640},
                    {"exps", 65536 * heads[i]},
                    {"seconds_median", median},
                    {"seconds_spread", 0.1 * median},
                    {"gflops", 0.671 / median},
                    {"peak_percent", 50.0},
                    {"worst_error", 1e-7},
                    {"error_bound", 1e-5},
                    {"implementation", "tiled"},
                    {"round_seconds", seconds},
                    {"round_peak_gflops", peaks},
                    {"phases",
                     {{{"name", "projections"}, {"seconds", projections}},
                      {{"name", "softmax"}, {"seconds", median - projections}}}}});
  }
  return {{"version", "1.0.0"},
          {"date", "2026-01-31"},
          {"config",
           {{"embed_dim", 512},
            {"seq", 256},
            {"batch", 1},
            {"causal", false},
            {"type", "f32"},
            {"threads", 1},
            {"rounds", 9},
            {"heads", heads}}},
          {"machine",
           {{"cpu", "a CPU"},
            {"cores", 2},
            {"threads", 1},
            {"simd", "AVX2"},
            {"onednn", "3.1"},
            {"highway", "1.2"},
            {"fma_peak_gflops", 100.0}}},
          {"rows", rows}};
}

const std::vector<std::int64_t> kHeads = {1, 4, 16, 64};
const std::vector<double> kTimes = {5.0, 5.05, 5.1, 6.5};

/// The comparison of two saved sweeps, and what the command ended with.
struct Compared {
  int exit_code;
  json comparison;
};
Compared compared(const json& before, const json& after, const std::string& more = "") {
  const CommandFolder folder;
  folder.write("before.json", before.dump());
  folder.write("after.json", after.dump());
  const CommandResult result = folder.run("sweep --from after.json --compare before.json --json out.json " + more);
  EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 1) << result.error;
  return {result.exit_code, json::parse(folder.read("out.json"))["comparison"]};
}

TEST(SweepCompare, TheSameSweepIsNotSlower) {
  const json sweep = saved_sweep(kHeads, kTimes);
  const Compared result = compared(sweep, sweep);
  EXPECT_EQ(result.exit_code, 0);
  for (const json& head : result.comparison["heads"]) {
    EXPECT_EQ(head["ratio"], 1.0);
    EXPECT_LT(head["low"], 1.0);
    EXPECT_GT(head["high"], 1.0);
  }
}

TEST(SweepCompare, ATenthSlowerIsFound) {
  const Compared result = compared(saved_sweep(kHeads, kTimes), saved_sweep(kHeads, kTimes, 1.1));
  EXPECT_EQ(result.exit_code, 1);
  for (const json& head : result.comparison["heads"]) {
    EXPECT_NEAR(head["ratio"], 1.1, 1e-9);
    EXPECT_TRUE(head["slower"].get<bool>()) << head;
  }
}

TEST(SweepCompare, OneHeadCountAloneIsEnough) {
  std::vector<double> times = kTimes;
  times[2] *= 1.15;
  const Compared result = compared(saved_sweep(kHeads, kTimes), saved_sweep(kHeads, times));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(result.comparison["heads"][2]["slower"].get<bool>());
  EXPECT_FALSE(result.comparison["heads"][1]["slower"].get<bool>());
}

TEST(SweepCompare, ATenthFasterIsNoFailure) {
  const Compared result = compared(saved_sweep(kHeads, kTimes), saved_sweep(kHeads, kTimes, 0.88));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(result.comparison["heads"][0]["faster"].get<bool>());
}

TEST(SweepCompare, ASlowerClockIsNoSlowerCode) {
  const Compared result = compared(saved_sweep(kHeads, kTimes), saved_sweep(kHeads, kTimes, 1, 0.8));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NEAR(result.comparison["heads"][0]["ratio_of_times"], 1.25, 1e-9);
  EXPECT_NEAR(result.comparison["heads"][0]["ratio"], 1.0, 1e-9);
}

TEST(SweepCompare, WithinTheToleranceIsNotSlower) {
  EXPECT_EQ(compared(saved_sweep(kHeads, kTimes), saved_sweep(kHeads, kTimes, 1.1), "--tolerance 15").exit_code, 0);
}

TEST(SweepCompare, HeadCountsOfOneSweepAreTold) {
  const Compared result = compared(saved_sweep({1, 4, 32}, {5, 5, 5}), saved_sweep({1, 4, 64}, {5, 5, 5}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.comparison["only_old"], std::vector<int>{32});
  EXPECT_EQ(result.comparison["only_new"], std::vector<int>{64});
}

TEST(SweepCompare, WrongInputIsOneLine) {
  const CommandFolder folder;
  json other = saved_sweep(kHeads, kTimes), short_one = other, none = other;
  folder.write("good.json", other.dump());
  other["config"]["seq"] = 128;
  folder.write("other.json", other.dump());
  short_one["rows"][1].erase("round_seconds");
  folder.write("short.json", short_one.dump());
  none = saved_sweep({2}, {5});
  folder.write("none.json", none.dump());
  folder.write("no.json", "{");
  const std::string from = "sweep --from good.json --json left.json --compare ";
  expect_refused(folder, from + "other.json", "seq is 128 in the sweep to compare with and 256 in this one");
  expect_refused(folder, from + "short.json", "short.json.rows[1] has no \"round_seconds\"");
  expect_refused(folder, from + "none.json", "heads are 2 in the sweep to compare with and 1, 4, 16, 64 in this one");
  expect_refused(folder, from + "no.json", "no.json is no JSON");
  expect_refused(folder, from + "absent.json", "absent.json: cannot read");
  expect_refused(folder, "sweep --from good.json --with good.json", "--with is given without --html");
  expect_refused(folder, "sweep --from good.json --html good.json", "good.json");
  for (const std::string& name : folder.files()) EXPECT_NE(name, "left.json");
}

TEST(SweepPage, TheSweetSpotAndWhatLimitsBeyondIt) {
  const CommandFolder folder;
  folder.write("a.json", saved_sweep(kHeads, kTimes).dump());
  ASSERT_EQ(folder.run("sweep --from a.json --html a.html").exit_code, 0);
  const std::string page = folder.read("a.html");
  const std::size_t begin = page.find("id=\"headway-data\">") + 18;
  const json data = json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  const json& spot = data["sweeps"][0]["sweet_spot"];
  EXPECT_EQ(spot["fastest"], 1);
  EXPECT_EQ(spot["first"], 1);
  EXPECT_EQ(spot["last"], 16) << "64 heads take 30 % more";
  EXPECT_EQ(spot["limit"], "softmax");
  EXPECT_NEAR(spot["limit_share"], 1.0, 1e-9);
  EXPECT_NE(data["sentence"].get<std::string>().find("64 heads take 30 % more time than one."), std::string::npos);
}

TEST(SweepPageInABrowser, ShowsTheSavedSweeps) {
  const CommandFolder folder;
  const json sweep = saved_sweep(kHeads, kTimes);
  folder.write("a.json", sweep.dump());
  folder.write("b.json", saved_sweep({1, 4, 8}, {6, 6.2, 7}).dump());
  ASSERT_EQ(folder.run("sweep --from a.json --html page.html --with b.json --compare b.json").exit_code, 0);
  const CommandResult result =
      folder.shell("command -v python3 >/dev/null || { echo no python3; exit 77; }; python3 " HEADWAY_SOURCE_DIR
                   "/tests/tools/view/sweep_page.py page.html a.json ${PICTURES:-}");
  if (result.exit_code == 77) GTEST_SKIP() << result.out;
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
}

}  // namespace
}  // namespace headway
