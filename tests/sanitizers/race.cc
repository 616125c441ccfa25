// Two threads that write one number with nothing between them: what the thread sanitizer must not let pass.
#include <thread>

int shared_number = 0;

int main() {
  std::thread other([] { ++shared_number; });
  ++shared_number;
  other.join();
  return shared_number == 2 ? 0 : 1;
}
