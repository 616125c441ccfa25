// Uses an installed engine and knows nothing of what it links. An error thrown by the one library is caught as itself.
#include <cstdint>
#include <stdexcept>
#include <string>

std::int64_t engine_flops(std::int64_t tokens);

int main() {
  if (engine_flops(16) != 2 * 16 * 16 * (8 + 8)) return 1;
  try {
    engine_flops(-1);
  } catch (const std::runtime_error& error) {
    return std::string(error.what()).find("-1") == std::string::npos ? 2 : 0;
  }
  return 3;
}
