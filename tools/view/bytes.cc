// See bytes.h.
#include "tools/view/bytes.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace headway::tools {

void Payload::add(std::int32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes_.push_back(static_cast<char>(value >> shift & 0xff));
}

void Payload::add(float value) { add(std::bit_cast<std::int32_t>(value)); }

void Payload::add_24_bits(std::int32_t value) {
  for (int shift = 0; shift < 24; shift += 8) bytes_.push_back(static_cast<char>(value >> shift & 0xff));
}

nlohmann::json Payload::part(std::size_t begin) {
  const std::size_t bytes = bytes_.size() - begin;
  while (bytes_.size() % 4 != 0) bytes_.push_back('\0');
  return {{"offset", begin}, {"bytes", bytes}};
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (int k = 0; k < 4; ++k) out.push_back(kDigits[word >> (18 - 6 * k) & 63]);
  }
  for (std::size_t k = 0; k < (3 - bytes.size() % 3) % 3; ++k) out[out.size() - 1 - k] = '=';
  return out;
}

}  // namespace headway::tools
