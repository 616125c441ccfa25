// headway_fuzz: generated and spoiled files through the library for as long as one likes. A case is a number: what it
// prints beside a finding runs that case alone.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/drive_attention.h"
#include "tests/fuzz/drive_c_api.h"
#include "tests/fuzz/drive_file.h"
#include "tests/fuzz/drive_manifest.h"
#include "tests/fuzz/drive_model.h"
#include "tests/fuzz/make_file.h"
#include "tests/fuzz/make_manifest.h"
#include "tests/fuzz/make_model.h"
#include "tests/fuzz/spoil.h"
#include "tests/fuzz/supervise.h"

namespace headway::fuzz {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string mode;
  std::uint64_t first = 0;
  std::int64_t count = 1000;
  std::vector<std::string> corpus;
  std::string write_to;
  bool minimise = false;
  Limits limits;
};

constexpr std::size_t kMaxSeedBytes = std::size_t{4} << 20;

/// Files of the corpus with one of these endings, in the order of their names.
std::vector<std::string> corpus_files(const Options& options, const std::vector<std::string>& endings) {
  std::vector<std::string> files;
  for (const std::string& folder : options.corpus) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string path = entry.path().string();
      const bool fits =
          std::any_of(endings.begin(), endings.end(), [&](const auto& one) { return path.ends_with(one); });
      if (fits && entry.is_regular_file() && entry.file_size() <= kMaxSeedBytes) files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) throw CLI::ValidationError("--corpus", "has no file that this mode takes");
  return files;
}

std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Modes of small files that are made, by the reader that they are for.
const std::map<std::string, FileKind> kMadeFiles = {
    {"safetensors", FileKind::kSafetensors}, {"npy", FileKind::kNpy}, {"tensors", FileKind::kOnnxTensor}};

/// Makes the bytes of case n.
class Cases {
 public:
  explicit Cases(const Options& options) : mode_(options.mode) {
    if (mode_ == "manifests") folders_ = std::make_unique<ManifestFolders>();
    if (mode_ == "models") files_ = corpus_files(options, {".onnx"});
    if (mode_ == "files") files_ = corpus_files(options, {".safetensors", ".npy", ".pb"});
  }

  std::string bytes(std::uint64_t n, int max_steps) const {
    Dice dice(n);
    if (const auto kind = kMadeFiles.find(mode_); kind != kMadeFiles.end()) return make_file(kind->second, &dice).bytes;
    if (mode_ == "manifests") return make_manifest(&dice).text;
    if (mode_ == "attention" || mode_ == "c_api") throw CLI::ValidationError("--write", mode_ + " has no bytes");
    if (mode_ == "graphs") return make_model(&dice, {max_steps}).SerializeAsString();
    if (mode_ == "spoiled") {
      onnx::ModelProto model = make_model(&dice, {max_steps});
      spoil_model(&dice, &model);
      return model.SerializeAsString();
    }
    std::string bytes = read_bytes(dice.pick(files_));
    onnx::ModelProto model;
    if (mode_ == "models" && dice.one_in(2) && model.ParseFromString(bytes) && model.graph().node_size() > 0) {
      spoil_model(&dice, &model);
      return model.SerializeAsString();
    }
    spoil_bytes(&dice, &bytes);
    return bytes;
  }

  CaseResult run(std::uint64_t n, int max_steps) const {
    Dice dice(n);
    bool refused = false;
    if (mode_ == "attention") {
      const AttentionFinding found = drive_attention(n);
      return {found.kind, found.finding};
    }
    if (mode_ == "c_api") {
      const CFinding found = drive_c_api(&dice);
      return {found.kind, found.finding};
    }
    if (mode_ == "manifests") {
      const std::string finding = folders_->drive(&dice, &refused);
      return {refused ? "refused" : "run", finding};
    }
    if (const auto kind = kMadeFiles.find(mode_); kind != kMadeFiles.end()) {
      const MadeFile file = make_file(kind->second, &dice);
      const std::string finding = drive_file(kind->second, file.bytes, &refused, file.right ? &file.tensors : nullptr);
      return {refused ? "refused" : "read", finding};
    }
    const std::string made = bytes(n, max_steps);
    if (mode_ == "files") {
      const std::string finding = drive_file(kind_of(dice.pick(files_)), made, &refused);
      return {refused ? "refused" : "read", finding};
    }
    const DriveResult result = drive_model(made, n);
    if (mode_ == "graphs" && !result.ran && result.finding.empty()) {
      return {"refused", "a right model is refused: " + result.refusal};
    }
    return {!result.ran ? "refused" : result.fused > 0 ? "ran, fused" : "ran", result.finding};
  }

 private:
  std::string mode_;
  std::vector<std::string> files_;
  std::unique_ptr<ManifestFolders> folders_;
};

constexpr int kAllSteps = 1 << 20;

/// Steps of a generated model are appended one after the other: the least number that still fails is the small case.
int least_steps(const Cases& cases, std::uint64_t n) {
  for (int steps = 1; steps < 14; ++steps) {
    if (!cases.run(n, steps).finding.empty()) return steps;
  }
  return kAllSteps;
}

int run(const Options& options) {
  const Cases cases(options);
  int steps = kAllSteps;
  if (options.minimise) {
    steps = least_steps(cases, options.first);
    std::printf("case %llu fails from %d steps on: %s\n", static_cast<unsigned long long>(options.first), steps,
                cases.run(options.first, steps).finding.c_str());
  }
  if (!options.write_to.empty()) {
    std::ofstream(options.write_to, std::ios::binary) << cases.bytes(options.first, steps);
    return 0;
  }
  if (options.minimise) return 0;
  std::string corpus;
  for (const std::string& folder : options.corpus) corpus += " --corpus " + folder;
  const Totals totals = supervise(
      options.first, options.count, options.limits, [&](std::uint64_t n) { return cases.run(n, kAllSteps); },
      [&](std::uint64_t n) {
        return "headway_fuzz " + options.mode + " --first " + std::to_string(n) + " --count 1" + corpus;
      });
  return totals.findings == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::fuzz

int main(int argc, char** argv) {
  headway::fuzz::Options options;
  CLI::App app("Generated and spoiled files through the library; exit code 1 when something was found");
  const std::map<std::string, const char*> modes = {
      {"graphs", "right models at random, run as they are and fused; a refusal is a finding too"},
      {"spoiled", "such models made wrong by their structure"},
      {"models", "the corpus' .onnx files, spoiled by structure or by bytes"},
      {"files", "the corpus' .safetensors, .npy and .pb files, spoiled by bytes"},
      {"safetensors", "small .safetensors files, right or wrong by their structure"},
      {"npy", "small .npy files, the same"},
      {"tensors", "small .pb files of one tensor, the same"},
      {"manifests", "folders of cases for conformance, their JSON right or wrong"},
      {"c_api", "calls of the C API, right or with fields that are not what they should be"},
      {"attention",
       "problems at random on every implementation and SIMD target, on one and two threads, against the "
       "double reference"}};
  app.require_subcommand(1);
  for (const auto& [name, text] : modes) {
    CLI::App* mode = app.add_subcommand(name, text);
    mode->add_option("--first", options.first, "Number of the first case");
    mode->add_option("--count", options.count, "How many cases");
    mode->add_option("--corpus", options.corpus, "Folders of files to spoil")->check(CLI::ExistingDirectory);
    mode->add_option("--seconds", options.limits.run_seconds, "Stop after so long");
    mode->add_option("--case-seconds", options.limits.case_seconds, "A case that takes longer is a finding");
    mode->add_option("--memory-mb", options.limits.memory_mb, "A case that has more resident is a finding");
    mode->add_option("--max-findings", options.limits.max_findings, "Stop after so many");
    mode->add_option("--write", options.write_to, "Write the bytes of the first case to a file instead");
    mode->add_flag("--minimise", options.minimise, "Generated models: the fewest steps of the first case that fail");
    mode->callback([&options, name = name] { options.mode = name; });
  }
  CLI11_PARSE(app, argc, argv);
  try {
    return headway::fuzz::run(options);
  } catch (const CLI::Error& error) {
    return app.exit(error);
  }
}
