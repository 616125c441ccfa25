// The page of a profile: one run on a time line, phases against the roofs of the machine, layers of a model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headway/profiler.h"
#include "headway/threads.h"

namespace headway::tools {

struct ProfilePageParts {
  std::string what;  ///< of what layer or model
  int workers = 1;
  int runs = 1;             ///< that `rows` are the totals of
  double wall_seconds = 0;  ///< of one run
  std::vector<Profiler::Row> rows;
  std::string trace;                             ///< Profiler::chrome_trace() of one run
  std::map<std::string, std::string> operators;  ///< of a model: the operator of each node by its name
};

/// Measures the roofs on these threads, then makes the page.
std::string profile_page(const ProfilePageParts& parts, const Threads& threads);

}  // namespace headway::tools
