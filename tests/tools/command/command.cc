// See command.h.
#include "tests/tools/command/command.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "headway_test_paths.h"

namespace headway {

CommandFolder::CommandFolder() {
  static int counter = 0;
  folder_ = testing::TempDir() + "headway-command-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
  std::filesystem::create_directory(folder_);
}

CommandFolder::~CommandFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

CommandResult CommandFolder::run(const std::string& arguments, const std::string& environment) const {
  return shell(environment + " \"$HEADWAY\" " + arguments);
}

CommandResult CommandFolder::shell(const std::string& line) const {
  // Beside the folder, not in it: files() shows only what the command left.
  const std::string out = folder_ + ".out", error = folder_ + ".err";
  const std::string whole =
      "cd '" + folder_ + "' && HEADWAY='" + HEADWAY_COMMAND + "' && (" + line + "\n) >'" + out + "' 2>'" + error + "'";
  const int status = std::system(whole.c_str());
  const auto contents = [](const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    std::filesystem::remove(file);
    return text.str();
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(error)};
}

void CommandFolder::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
}

std::string CommandFolder::read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(path(name), std::ios::binary).rdbuf();
  return text.str();
}

std::vector<std::string> CommandFolder::files() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

std::string out_of_stopped(const CommandFolder& folder, const std::string& arguments, const std::string& says) {
  const std::vector<std::string> before = folder.files();
  const CommandResult result = folder.run(arguments);
  EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.out << result.error;
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << arguments << "\n" << result.error;
  EXPECT_LE(result.error.size(), std::string("headway: \n").size() + 300) << arguments << "\n" << result.error;
  EXPECT_NE(result.error.find(says), std::string::npos) << arguments << "\n" << result.error;
  EXPECT_EQ(folder.files(), before) << arguments << " wrote something";
  return result.out;
}

}  // namespace

void expect_refused(const CommandFolder& folder, const std::string& arguments, const std::string& says) {
  EXPECT_EQ(out_of_stopped(folder, arguments, says), "") << arguments;
}

void expect_stopped(const CommandFolder& folder, const std::string& arguments, const std::string& says) {
  out_of_stopped(folder, arguments, says);
}

Tensor floats(const Dims& dims, const std::vector<float>& values) {
  Tensor tensor(DataType::kF32, dims);
  EXPECT_EQ(tensor.count(), static_cast<std::int64_t>(values.size()));
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

Tensor bools(const Dims& dims, const std::vector<int>& values) {
  Tensor tensor(DataType::kBool, dims);
  EXPECT_EQ(tensor.count(), static_cast<std::int64_t>(values.size()));
  std::transform(values.begin(), values.end(), tensor.data<bool>(), [](int value) { return value != 0; });
  return tensor;
}

Tensor varied(const Dims& dims, int seed) {
  Tensor tensor(DataType::kF32, dims);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    tensor.data<float>()[i] = std::sin(static_cast<float>(i * 37 + seed * 101) * 0.61f);
  }
  return tensor;
}

void save(const CommandFolder& folder, const std::string& name, const std::map<std::string, const Tensor*>& tensors) {
  std::map<std::string, ConstTensorView> views;
  for (const auto& [key, tensor] : tensors) views.emplace(key, tensor->view());
  write_safetensors(folder.path(name), views);
}

std::vector<float> load(const CommandFolder& folder, const std::string& name, const std::string& tensor) {
  const SafetensorsFile file = SafetensorsFile::open(folder.path(name));
  const ConstTensorView view = file.tensor(tensor);
  return {view.as<float>(), view.as<float>() + view.count()};
}

}  // namespace headway
