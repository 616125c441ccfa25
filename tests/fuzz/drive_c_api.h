// One call of the C API, right or with some fields spoiled. Decides what counts as a finding.
#pragma once

#include <string>

#include "tests/fuzz/dice.h"

namespace headway::fuzz {

struct CFinding {
  std::string kind;     ///< the function that ran, or "refused"
  std::string finding;  ///< empty: all is well
};

/// Makes an object, asks for its workspace, runs and ends it. A finding is a status that there is not, a failure of the
/// library's own, a reason that is no line, or an output written by a call that failed; and, by a sanitizer, whatever
/// is read or written beside a tensor.
CFinding drive_c_api(Dice* dice);

}  // namespace headway::fuzz
