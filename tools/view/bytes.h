// Typed arrays as the page reads them: little-endian bytes, and base64 of them. Knows nothing of what they mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace headway::tools {

/// Arrays behind one another; where each lies is said in JSON.
class Payload {
 public:
  void add(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void add(std::int32_t value);
  void add(float value);
  /// In the page's three bytes; |value| < 2^23.
  void add_24_bits(std::int32_t value);
  std::size_t size() const { return bytes_.size(); }
  /// Ends the array that began at `begin`, with padding to four bytes: {"offset", "bytes"}.
  nlohmann::json part(std::size_t begin);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string base64(std::string_view bytes);

}  // namespace headway::tools
