// See names.h.
#include "runtime/onnx/names.h"

#include "runtime/safetensors/json_reader.h"

namespace headway::importer {

std::string quoted(const std::string& name) { return '\'' + printable(name) + '\''; }

}  // namespace headway::importer
