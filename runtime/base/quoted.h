// A name from a file as messages show it, formatted only when a message is made: the checks of a run format nothing.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "runtime/base/printable.h"

namespace headway {

struct Quoted {
  std::string_view name;
  friend std::ostream& operator<<(std::ostream& out, const Quoted& quoted_name) {
    return out << quoted(std::string(quoted_name.name));
  }
};

}  // namespace headway
