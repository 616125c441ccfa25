#pragma once
#include "headway/error.h"
namespace headway { inline constexpr ErrorCode kOutOfMemory = static_cast<ErrorCode>(4); }
