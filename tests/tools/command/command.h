// Runs the built headway command as a user does, in a folder of its own, and keeps what it said.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headway/safetensors.h"

namespace headway {

struct CommandResult {
  int exit_code = -1;
  std::string out;
  std::string error;
};

/// A folder for the files of one test, gone with it. The command runs inside, so names of files need no folder.
class CommandFolder {
 public:
  CommandFolder();
  ~CommandFolder();
  CommandFolder(const CommandFolder&) = delete;
  CommandFolder& operator=(const CommandFolder&) = delete;

  /// `arguments` as in a shell; `environment` goes before the command.
  CommandResult run(const std::string& arguments, const std::string& environment = "") const;
  /// Any line of a shell, in which $HEADWAY is the command; its own redirections hold. The exit code of a signal is
  /// 128 + its number.
  CommandResult shell(const std::string& line) const;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& bytes) const;
  std::string read(const std::string& name) const;
  /// Names in the folder, in order.
  std::vector<std::string> files() const;

 private:
  std::string folder_;
};

/// Expects exit code 2, nothing on the standard output, and one line of error that holds `says`.
void expect_refused(const CommandFolder& folder, const std::string& arguments, const std::string& says);

/// The same for what is found out after the first lines were printed: the standard output may hold something.
void expect_stopped(const CommandFolder& folder, const std::string& arguments, const std::string& says);

/// Small tensors by value.
Tensor floats(const Dims& dims, const std::vector<float>& values);
Tensor bools(const Dims& dims, const std::vector<int>& values);
/// Distinct values of about unit size.
Tensor varied(const Dims& dims, int seed);
void save(const CommandFolder& folder, const std::string& name, const std::map<std::string, const Tensor*>& tensors);
std::vector<float> load(const CommandFolder& folder, const std::string& name, const std::string& tensor);

}  // namespace headway
