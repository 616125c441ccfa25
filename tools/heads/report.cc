// See report.h.
#include "tools/heads/report.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/base/printable.h"

namespace headway::tools {
namespace {

/// "0.123", or a dash where it is not defined.
std::string number(double value, int width) {
  return std::isnan(value) ? fmt::format("{:>{}}", "-", width) : fmt::format("{:>{}.3f}", value, width);
}

nlohmann::json number_or_null(double value) { return std::isnan(value) ? nlohmann::json() : nlohmann::json(value); }

}  // namespace

std::vector<std::string> badges(const HeadMeasures& head) {
  std::vector<std::string> names;
  for (std::size_t r = 0; r < kRoles; ++r) {
    if (head.roles[r].earns_badge()) names.emplace_back(kRoleTexts[r].badge);
  }
  return names;
}

std::string heads_table(const std::vector<HeadsOfLayer>& layers) {
  fmt::memory_buffer out;
  const auto to = std::back_inserter(out);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const HeadsOfLayer& layer = layers[l];
    fmt::format_to(to, "layer {} {}: {} attention, {} heads, {} queries × {} keys\n", l, printable(layer.name),
                   layer.self ? "self" : "cross or cached", layer.heads.size(), layer.queries, layer.keys);
    fmt::format_to(to, "  head  entropy  of ln n  distance");
    for (const RoleText& role : kRoleTexts) fmt::format_to(to, "  {:>9}", role.key);
    fmt::format_to(to, "  badges\n");
    for (std::size_t h = 0; h < layer.heads.size(); ++h) {
      const HeadMeasures& head = layer.heads[h];
      fmt::format_to(to, "  {:>4}  {}  {}  {}", h, number(head.entropy, 7), number(head.entropy_share, 7),
                     number(head.distance, 8));
      for (const RoleScore& role : head.roles) fmt::format_to(to, "  {}", number(role.score, 9));
      fmt::format_to(to, "  {}\n", fmt::join(badges(head), ", "));
    }
  }
  return fmt::to_string(out);
}

std::string role_definitions() {
  std::string out = fmt::format(
      "entropy: -Σ p ln p of a row in nats; of ln n: its share of ln(visible keys); distance: Σ p |position - key|; "
      "all "
      "means over rows, without those of padding.\nA badge: the mean over at least {} rows reaches {} and {} times "
      "what even rows would give. Of "
      "{} random heads as many reach it:\n",
      kBadgeRows, kBadgeScore, kBadgeOverUniform, kRandomHeads);
  for (std::size_t r = 0; r < kRoles; ++r) {
    out += fmt::format("  {:<9} {:>3}  {}\n", kRoleTexts[r].key, kRandomBadges[r], kRoleTexts[r].definition);
  }
  return out;
}

nlohmann::json roles_json() {
  nlohmann::json roles = nlohmann::json::array();
  for (std::size_t r = 0; r < kRoles; ++r) {
    const RoleText& text = kRoleTexts[r];
    roles.push_back({{"key", text.key},
                     {"name", text.name},
                     {"badge", text.badge},
                     {"definition", text.definition},
                     {"threshold", kBadgeScore},
                     {"threshold_over_uniform", kBadgeOverUniform},
                     {"threshold_rows", kBadgeRows},
                     {"random_heads", kRandomHeads},
                     {"random_badges", kRandomBadges[r]}});
  }
  return roles;
}

nlohmann::json head_json(const HeadMeasures& head, std::size_t index) {
  nlohmann::json roles;
  for (std::size_t r = 0; r < kRoles; ++r) {
    const RoleScore& role = head.roles[r];
    roles[kRoleTexts[r].key] = {{"score", number_or_null(role.score)},
                                {"uniform", number_or_null(role.uniform)},
                                {"threshold", number_or_null(role.rows > 0 ? role.threshold() : std::nan(""))},
                                {"rows", role.rows},
                                {"badge", role.earns_badge()}};
  }
  return {{"head", index},
          {"entropy", number_or_null(head.entropy)},
          {"entropy_share", number_or_null(head.entropy_share)},
          {"distance", number_or_null(head.distance)},
          {"rows", head.rows},
          {"roles", roles},
          {"badges", badges(head)}};
}

nlohmann::json heads_json(const std::vector<HeadsOfLayer>& layers) {
  nlohmann::json all = nlohmann::json::array();
  for (const HeadsOfLayer& layer : layers) {
    nlohmann::json heads = nlohmann::json::array();
    for (std::size_t h = 0; h < layer.heads.size(); ++h) heads.push_back(head_json(layer.heads[h], h));
    all.push_back({{"name", layer.name},
                   {"op", layer.op},
                   {"self", layer.self},
                   {"queries", layer.queries},
                   {"keys", layer.keys},
                   {"heads", heads}});
  }
  return {{"roles", roles_json()}, {"layers", all}};
}

}  // namespace headway::tools
