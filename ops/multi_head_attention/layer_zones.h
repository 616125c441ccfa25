// The zones of the profile that the layer reports besides those of its core.
#pragma once

#include "headway/profiler.h"

namespace headway {

inline constexpr Zone kZoneLayerPack{"pack", "layer"};
inline constexpr Zone kZoneProjections{"projections", "layer"};
inline constexpr Zone kZoneOutput{"output", "layer"};

}  // namespace headway
