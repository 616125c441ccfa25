// A file with given bytes in the test's temporary folder, gone at the end of the scope.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace headway {

class ScratchFile {
 public:
  ScratchFile() {
    static int counter = 0;
    path_ = ::testing::TempDir() + "headway-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) +
            ".safetensors";
  }
  explicit ScratchFile(const std::string& bytes) : ScratchFile() { set(bytes); }
  ~ScratchFile() { std::remove(path_.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }
  void set(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string bytes() const {
    std::ostringstream out;
    out << std::ifstream(path_, std::ios::binary).rdbuf();
    return out.str();
  }

 private:
  std::string path_;
};

/// Length, header, data: the three parts of the format, with a length that may lie.
inline std::string with_length(std::uint64_t header_bytes, const std::string& rest) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &header_bytes, 8);
  return out + rest;
}
inline std::string file_bytes(const std::string& header, std::size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\0'));
}

}  // namespace headway
