// Requests from lines of JSON and results as lines of JSON. Knows no engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/engine/request.h"

namespace headway::engine {

/// "1,2,3". Throws kInvalidArgument naming `argument` and what stands there.
std::vector<std::int32_t> parse_ids(std::string_view text, const char* argument);
/// A JSON object a line with "prompt", and "id", "max_new_tokens", "stop", "temperature", "top_k", "top_p", "seed"
/// where they differ from `defaults`; empty lines are skipped. Throws kIo, and kInvalidArgument naming file, line and
/// field.
std::vector<Request> read_requests(const std::string& path, const Request& defaults);
/// {"id": …, "tokens": […]} with the generated ones.
std::string result_line(const Sequence& sequence);

}  // namespace headway::engine
