// See names.h.
#include "runtime/base/names.h"

#include "runtime/base/json_reader.h"

namespace headway::importer {

std::string quoted(const std::string& name) { return '\'' + printable(name) + '\''; }

}  // namespace headway::importer
