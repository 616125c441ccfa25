// The version as text.
#include "headway/version.h"

#define HEADWAY_TEXT_OF(number) #number
#define HEADWAY_DOTTED(major, minor, patch) HEADWAY_TEXT_OF(major) "." HEADWAY_TEXT_OF(minor) "." HEADWAY_TEXT_OF(patch)

namespace headway {

const char* version() noexcept {
  return HEADWAY_DOTTED(HEADWAY_VERSION_MAJOR, HEADWAY_VERSION_MINOR, HEADWAY_VERSION_PATCH);
}

}  // namespace headway
