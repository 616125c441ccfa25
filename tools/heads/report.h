// What was measured of heads, as a table and as JSON. Measures nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/heads/measures.h"

namespace headway::tools {

/// One attention of a model, or the layer.
struct HeadsOfLayer {
  std::string name;
  std::string op;
  bool self = true;  ///< queries have positions among the keys
  std::int64_t queries = 0, keys = 0;
  std::vector<HeadMeasures> heads;
};

/// Names of the badges that a head earns, in the order of the roles.
std::vector<std::string> badges(const HeadMeasures& head);

std::string heads_table(const std::vector<HeadsOfLayer>& layers);
/// The definitions, thresholds and how often random heads reach them, as text.
std::string role_definitions();

/// {"roles": [{"key", "name", "definition", "threshold", "random_badges", "random_heads"}], "layers": [{"name", "op",
/// "self", "queries", "keys", "heads": [{"head", "entropy", "entropy_share", "distance", "roles": {"first": {"score",
/// "uniform", "rows", "badge"}, …}, "badges"}]}]}; what is not defined is null.
nlohmann::json roles_json();
nlohmann::json head_json(const HeadMeasures& head, std::size_t index);
nlohmann::json heads_json(const std::vector<HeadsOfLayer>& layers);

}  // namespace headway::tools
