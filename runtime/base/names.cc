// See names.h.
#include "runtime/base/names.h"

#include "runtime/base/json_reader.h"

namespace headway {

std::string quoted(std::string_view name) { return '\'' + printable(name) + '\''; }

}  // namespace headway
