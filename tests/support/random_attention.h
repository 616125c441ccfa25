// Attention problems at random: lengths around vectors and tiles, all widths, head counts, masks and their
// compositions, layouts, windows, score outputs. Decides what is drawn how often; knows no implementation.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/attention_case.h"

namespace headway::testing {

inline const std::vector<std::int64_t> kSweptLengths = {0,  1,  2,  7,  8,  9,  15,  16,  17, 31,
                                                        33, 47, 48, 49, 65, 97, 128, 133, 197};
inline const std::vector<std::int64_t> kSweptWidths = {1, 3, 5, 8, 16, 17, 32, 48, 64, 80, 100, 128, 256};

/// The products of query and key and of weights and value that a problem may take, about: some milliseconds for the
/// reference.
inline constexpr std::int64_t kSweptCost = 1'500'000;

/// The problem of this number. A third is bf16.
CaseShape random_shape(std::uint64_t seed, std::int64_t max_cost = kSweptCost);

}  // namespace headway::testing
