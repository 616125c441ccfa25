// What a user meets first: help, bad options, the figures of info, sweep and profile, and the files they write.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/tools/command/command.h"

namespace headway {
namespace {

using nlohmann::json;

TEST(Command, HelpEverywhere) {
  const CommandFolder folder;
  for (const char* command : {"", "info", "sweep", "profile", "attend", "run", "explain", "conformance"}) {
    const CommandResult result = folder.run(std::string(command) + " --help");
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_EQ(result.error, "") << command;
    EXPECT_NE(result.out.find("Usage: headway"), std::string::npos) << command << result.out;
  }
  EXPECT_EQ(folder.run("--version").exit_code, 0);
}

TEST(Command, BadUseIsOneLineAndTwo) {
  const CommandFolder folder;
  expect_refused(folder, "", "subcommand");
  expect_refused(folder, "dance", "dance");
  expect_refused(folder, "sweep", "--embed-dim");
  expect_refused(folder, "sweep --embed-dim 64", "--seq");
  expect_refused(folder, "sweep --embed-dim 100 --seq 8 --heads 1,7", "--heads 7 does not divide --embed-dim 100");
  expect_refused(folder, "sweep --embed-dim 64 --seq 8 --heads 2,2", "2 more than once");
  expect_refused(folder, "sweep --embed-dim 64 --seq 8 --heads 0", "--heads");
  expect_refused(folder, "sweep --embed-dim 64 --seq -8 --heads 1", "--seq");
  expect_refused(folder, "sweep --embed-dim x --seq 8", "--embed-dim");
  expect_refused(folder, "sweep --preset bert-huge", "bert-base");
  expect_refused(folder, "sweep --embed-dim 64 --seq 8 --heads 1 --implementation magic", "tiled");
  expect_refused(folder, "sweep --embed-dim 64 --seq 8 --heads 1 --simd MMX", "MMX");
  expect_refused(folder, "sweep --embed-dim 64 --seq 8 --heads 1 --threads 0", "--threads");
  expect_refused(folder, "sweep --embed-dim 64 --seq 8 --heads 1 --type f16", "--type");
  expect_refused(folder, "profile --embed-dim 64 --seq 8 --heads 1 --type 3", "--type");
  expect_refused(folder, "sweep --embed-dim 1048576 --seq 1048576 --heads 1", "GB");
  expect_refused(folder, "profile --embed-dim 64 --seq 8 --heads 1,2", "2 values, expected 1");
  expect_refused(folder, "attend", "--input");
  expect_refused(folder, "attend --input nothing.safetensors", "nothing.safetensors");
  expect_refused(folder, "conformance", "folder");
  expect_refused(folder, "conformance nowhere", "nowhere");
  expect_refused(folder, "conformance .", "configs.json");
}

TEST(Command, ForcedByEnvironmentIsChecked) {
  const CommandFolder folder;
  const CommandResult result = folder.run("conformance .", "HEADWAY_ATTENTION=magic");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.error.find("HEADWAY_ATTENTION is 'magic'"), std::string::npos) << result.error;
}

TEST(Command, PoolsAreChosenAndGiveTheSameBits) {
  const CommandFolder folder;
  const std::string sizes = "profile --embed-dim 64 --seq 40 --heads 4 --rounds 1 ";
  expect_refused(folder, sizes + "--pool magic", "--pool is 'magic', expected one of own, openmp, serial");
  expect_refused(folder, sizes + "--pool serial --threads 2", "--threads is 2, expected 1 with a serial pool");
  const CommandResult result = folder.run(sizes, "HEADWAY_POOL=magic");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.error.find("HEADWAY_POOL is 'magic'"), std::string::npos) << result.error;

  const Tensor input = varied({2, 9, 16}, 1), in_weight = varied({48, 16}, 2), out_weight = varied({16, 16}, 3);
  save(folder, "input.safetensors", {{"query", &input}});
  save(folder, "weights.safetensors", {{"in_proj_weight", &in_weight}, {"out_proj.weight", &out_weight}});
  const std::string attend =
      "attend --input input.safetensors --weights weights.safetensors --heads 4 --no-weights --out out.safetensors ";
  std::vector<float> expected;
  for (const char* how : {"--pool serial", "--threads 3", "--pool openmp --threads 3", "--pool own --threads 2"}) {
    const CommandResult ran = folder.run(attend + how);
    ASSERT_EQ(ran.exit_code, 0) << how << ran.error;
    const std::vector<float> out = load(folder, "out.safetensors", "output");
    if (expected.empty()) expected = out;
    EXPECT_EQ(out, expected) << how;
  }
}

TEST(Command, InfoNamesMachineAndPeaks) {
  const CommandFolder folder;
  const CommandResult result = folder.run("info --threads 1 --json info.json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  for (const char* word : {"cpu", "simd target", "oneDNN", "Highway", "threads", "FMA peak", "GB/s"}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << word;
  }
  const json info = json::parse(folder.read("info.json"));
  EXPECT_GT(info.at("fma_peak_gflops").get<double>(), 0);
  EXPECT_GT(info.at("read_bandwidth_gbytes").get<double>(), 0);
}

TEST(Command, SweepReportsEveryHeadCount) {
  const CommandFolder folder;
  const CommandResult result = folder.run(
      "sweep --embed-dim 32 --seq 48 --batch 2 --heads 1,2,8,32 --threads 1 --rounds 2 --json s.json --csv s.csv");
  ASSERT_EQ(result.exit_code, 0) << result.out << result.error;
  EXPECT_NE(result.out.find("constant is the matrix work"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("exactly linear in h"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\ntime: "), std::string::npos) << result.out;

  const json sweep = json::parse(folder.read("s.json"));
  EXPECT_GT(sweep.at("machine").at("fma_peak_gflops").get<double>(), 0);
  EXPECT_EQ(sweep.at("config").at("embed_dim"), 32);
  ASSERT_EQ(sweep.at("rows").size(), 4u);
  for (const json& row : sweep["rows"]) {
    const std::int64_t heads = row.at("heads");
    EXPECT_EQ(row.at("head_dim"), 32 / heads);
    EXPECT_EQ(row.at("parameters"), 4 * 32 * 32 + 4 * 32);
    // 2·B·S·E·4E + 4·B·S²·E, whatever h is.
    EXPECT_EQ(row.at("matmul_flops_nominal"), 2 * 2 * 48 * 32 * 4 * 32 + 4 * 2 * 48 * 48 * 32);
    EXPECT_GE(row.at("matmul_flops_executed"), row.at("matmul_flops_nominal"));
    EXPECT_GE(row.at("exps"), 2 * heads * 48 * 48);
    EXPECT_GT(row.at("seconds_median"), 0);
    EXPECT_GE(row.at("seconds_spread"), 0);
    EXPECT_GT(row.at("gflops"), 0);
    EXPECT_GT(row.at("peak_percent"), 0);
    EXPECT_FALSE(row.at("implementation").get<std::string>().empty());
  }
  const std::string csv = folder.read("s.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  EXPECT_EQ(csv.rfind("heads,head_dim,parameters,", 0), 0u);
  EXPECT_EQ(folder.files(), (std::vector<std::string>{"s.csv", "s.json"}));
}

TEST(Command, SweepAndProfileTakeBf16) {
  const CommandFolder folder;
  const std::string sizes = " --embed-dim 64 --seq 40 --threads 2 --rounds 2 --type bf16 --json j.json --heads ";
  CommandResult result = folder.run("sweep" + sizes + "1,4,16");
  ASSERT_EQ(result.exit_code, 0) << result.out << result.error;
  EXPECT_NE(result.out.find(", bf16; f32 FMA peak"), std::string::npos) << result.out;
  const json sweep = json::parse(folder.read("j.json"));
  EXPECT_EQ(sweep.at("config").at("type"), "bf16");
  for (const json& row : sweep.at("rows")) {
    EXPECT_GT(row.at("worst_error"), 1e-5) << "an output that was rounded to bf16 is off by more";
    EXPECT_LE(row.at("worst_error"), row.at("error_bound"));
  }
  result = folder.run("profile" + sizes + "4");
  ASSERT_EQ(result.exit_code, 0) << result.out << result.error;
  EXPECT_NE(result.out.find(", bf16; f32 FMA peak"), std::string::npos) << result.out;
  EXPECT_EQ(json::parse(folder.read("j.json")).at("config").at("type"), "bf16");
  ASSERT_EQ(folder.run("profile --embed-dim 64 --seq 40 --rounds 1 --type f32 --json j.json --heads 4").exit_code, 0);
  EXPECT_EQ(json::parse(folder.read("j.json")).at("config").at("type"), "f32");
}

TEST(Command, SweepHonoursCausalAndForcedPath) {
  const CommandFolder folder;
  const CommandResult result = folder.run(
      "sweep --embed-dim 24 --seq 33 --heads 1,3,24 --threads 2 --rounds 1 --causal --implementation reference --json "
      "-");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json sweep = json::parse(result.out);
  for (const json& row : sweep.at("rows")) {
    EXPECT_EQ(row.at("implementation"), "reference");
    EXPECT_EQ(row.at("matmul_flops_nominal"), 2 * 33 * 24 * 4 * 24 + 4 * (33 * 34 / 2) * 24);
  }
}

TEST(Command, PlacesThatCannotBeWrittenAreRefusedBeforeMeasuring) {
  const CommandFolder folder;
  const std::string sizes = " --embed-dim 8 --seq 4 --heads 1 ";
  expect_refused(folder, "sweep" + sizes + "--json no/such/folder.json", "no/such/folder.json");
  expect_refused(folder, "sweep" + sizes + "--csv no/such/folder.csv", "no/such/folder.csv");
  expect_refused(folder, "profile" + sizes + "--trace no/such/trace.json", "no/such/trace.json");
  expect_refused(folder, "info --json no/such/info.json", "no/such/info.json");
}

TEST(Command, ProfileNamesPhases) {
  const CommandFolder folder;
  const CommandResult result =
      folder.run("profile --embed-dim 64 --seq 40 --heads 4 --threads 1 --rounds 3 --json p.json --trace t.json");
  ASSERT_EQ(result.exit_code, 0) << result.out << result.error;
  EXPECT_NE(result.out.find("of the wall time"), std::string::npos) << result.out;
  const json profile = json::parse(folder.read("p.json"));
  std::vector<std::string> names;
  for (const json& phase : profile.at("phases")) {
    names.push_back(phase.at("name"));
    for (const char* key : {"seconds", "flops_nominal", "flops_executed", "exps", "bytes", "peak_percent", "count"}) {
      EXPECT_TRUE(phase.contains(key)) << key;
    }
  }
  for (const char* phase : {"projections", "output"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), phase), 1) << phase;
  }
  EXPECT_GT(profile.at("wall_seconds").get<double>(), 0);
  const json trace = json::parse(folder.read("t.json"));
  EXPECT_GT(trace.at("traceEvents").size(), 3u);
}

}  // namespace
}  // namespace headway
