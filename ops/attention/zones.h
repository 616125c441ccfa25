// Zones of the profile that every engine reports under.
#pragma once

#include "headway/profiler.h"

namespace headway {

inline constexpr Zone kZonePack{"pack", "attention"};
inline constexpr Zone kZoneScores{"scores", "attention"};
inline constexpr Zone kZoneSoftmax{"softmax", "attention"};
inline constexpr Zone kZoneContext{"context", "attention"};

}  // namespace headway
