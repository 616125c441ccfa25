// The fields that specs have in common.
#pragma once

#include <cstdint>
#include <optional>

#include "headway/attention.h"
#include "headway/headway.h"

namespace headway::c_api {

headway_attention_rules default_rules() noexcept;
/// Throws kInvalidArgument naming the field that holds none of its constants.
AttentionRules rules_of(const headway_attention_rules& rules);

inline std::optional<std::int64_t> optional_size(std::int64_t size) {
  return size == HEADWAY_DEFAULT ? std::nullopt : std::optional(size);
}
std::optional<float> optional_scale(float scale);

}  // namespace headway::c_api
