// What a person wants to know of a sweep: which head counts are as good as the fastest, and what limits beyond them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/measure/sweep.h"

namespace headway::tools {

/// The head counts around the fastest whose median is within kSpotShare of its own.
struct SweetSpot {
  std::int64_t fastest = 0, first = 0, last = 0;
  /// Of the next head count beyond `last`: the phase whose time grew most since the fastest, and its part of what all
  /// phases that grew have grown. "" where there is no next.
  std::string limit;
  double limit_share = 0;
};
inline constexpr double kSpotShare = 0.03;

SweetSpot sweet_spot(const Sweep& sweep);
/// Two sentences: what more heads cost, and which are free.
std::string sweep_sentence(const Sweep& sweep);
nlohmann::json to_json(const SweetSpot& spot);

}  // namespace headway::tools
