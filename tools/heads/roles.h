// What a head may be for: the roles, how each is measured, and from which score on a head gets the badge. Data only.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace headway::tools {

enum Role { kFirst, kSame, kPrevious, kNext, kSeparator, kInduction, kRoles };

struct RoleText {
  const char* key;         ///< in JSON
  const char* name;        ///< in tables
  const char* badge;       ///< beside a head
  const char* definition;  ///< a sentence
};
inline constexpr std::array<RoleText, kRoles> kRoleTexts = {{
    {"first", "first token", "first", "attention to the first key, over the queries after the first position"},
    {"same", "same token", "same", "attention of a query to the key at its own position"},
    {"previous", "previous token", "previous", "attention to the key one position before the query"},
    {"next", "next token", "next", "attention to the key one position after the query"},
    {"separator", "separator", "separator",
     "attention to the keys that hold the separator, over the queries that are none"},
    {"induction", "induction", "induction",
     "attention to the keys right after earlier copies of the query's token, over the queries that have such a copy"},
}};

/// A head gets a badge when its score, the mean over the rows in which the role is defined, reaches the larger of
/// kBadgeScore and kBadgeOverUniform times what it would be if every row spread evenly over the keys that it sees, and
/// there are at least kBadgeRows such rows.
inline constexpr double kBadgeScore = 0.5;
inline constexpr double kBadgeOverUniform = 3;
inline constexpr std::int64_t kBadgeRows = 4;

/// How many of kRandomHeads random heads reach a badge, seeing both ways or causal: the test of the roles counts them.
/// They are random projections of random tokens, positions and a common mean, 48 of them, with scores that deviate by
/// 1, 2 or 4.
inline constexpr int kRandomHeads = 1000;
inline constexpr std::array<int, kRoles> kRandomBadges = {0, 0, 0, 0, 1, 0};

}  // namespace headway::tools
