// See drive_c_api.h.
#include "tests/fuzz/drive_c_api.h"

#include "headway/headway.h"
#include "tests/fuzz/c_calls.h"

namespace headway::fuzz {
namespace {

struct Function {
  const char* name;
  headway_status (*call)(Dice*, CCall*);
};
constexpr Function kFunctions[] = {{"attention", call_attention},
                                   {"multi_head_attention", call_multi_head_attention},
                                   {"cached_attention", call_cached_attention},
                                   {"append", call_append},
                                   {"merge", call_merge},
                                   {"packed_matmul", call_packed_matmul},
                                   {"cached_layer", call_cached_layer}};

std::string reason_of(headway_status status) {
  constexpr std::size_t kMaxMessage = 300;
  const std::string text = headway_last_error();
  if (status < HEADWAY_OK || status > HEADWAY_OUT_OF_MEMORY) return "status " + std::to_string(status);
  if (status == HEADWAY_INTERNAL) return "internal: " + text;
  if (text.empty()) return "a failure without a reason";
  if (text.find('\n') != std::string::npos) return "a reason of several lines: " + text;
  if (text.size() > kMaxMessage) return "a reason of " + std::to_string(text.size()) + " characters: " + text;
  return {};
}

}  // namespace

CFinding drive_c_api(Dice* dice) {
  const Function& function = dice->pick(kFunctions);
  CCall call(dice);
  const headway_status status = function.call(dice, &call);
  if (status == HEADWAY_OK) return {function.name, {}};
  std::string finding = reason_of(status);
  const std::string written = call.written();
  if (finding.empty() && !written.empty()) {
    finding = "a call that failed wrote tensor" + written + ": " + headway_last_error();
  }
  return {"refused", finding.empty() ? finding : std::string(function.name) + ": " + finding};
}

}  // namespace headway::fuzz
