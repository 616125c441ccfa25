// Running a session on the tensors of a file, by name; and comparing where only some rows count.
#pragma once

#include <map>
#include <string>

#include "headway/safetensors.h"
#include "headway/session.h"
#include "tools/conformance/compare_values.h"

namespace headway::tools {

using NamedTensors = std::map<std::string, Tensor>;

/// Throws kInvalidArgument when an input of the graph is not in the file.
NamedTensors run_on(const Session& session, const SafetensorsFile& inputs, const Threads& threads);

/// `mask` [B, S], i64, is 1 at live tokens; where it is present only those rows of a tensor [B, S, …] count.
ValueComparison compare_live_rows(const std::string& name, const ConstTensorView& got, const ConstTensorView& expected,
                                  const ConstTensorView& mask);

}  // namespace headway::tools
