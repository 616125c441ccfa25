// The next token from a row of logits. Knows no model.
#pragma once

#include <cstdint>
#include <span>

#include "tools/engine/request.h"

namespace headway::engine {

/// The token after `position` tokens: the same for the same logits, sampling and position, whatever else is running.
/// Of equal logits the first.
std::int32_t next_token(std::span<const float> logits, const Sampling& sampling, std::int64_t position);

}  // namespace headway::engine
