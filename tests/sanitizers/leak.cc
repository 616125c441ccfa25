// Leaks, so that a sanitized build can show that it would say so.
#include <cstdlib>

int main() {
  void* volatile kept = std::malloc(64);
  kept = nullptr;
  return kept == nullptr ? 0 : 1;
}
