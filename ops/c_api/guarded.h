// The border that no exception crosses: what a function of the C API does, as a status and a message. Knows no tensor.
#pragma once

#include <utility>

#include "headway/headway.h"

namespace headway::c_api {

/// Of the exception that is being handled; keeps its message for headway_last_error().
headway_status status_of_current_exception() noexcept;

template <class Work>
headway_status guarded(Work&& work) noexcept {
  try {
    std::forward<Work>(work)();
    return HEADWAY_OK;
  } catch (...) {
    return status_of_current_exception();
  }
}

}  // namespace headway::c_api
