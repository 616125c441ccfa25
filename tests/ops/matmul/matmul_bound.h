// How far an f32 product may be from the exact one.
#pragma once

namespace headway::testing {

/// |got − exact| ≤ kMatmulBound · ε · (Σ|a·b| + |bias|). A sum of K terms rounds once a term, by at most half an ε of
/// the partial sum; roundings go both ways, so that about √K/2 of them remain, and vector lanes shorten the sums
/// further. At K = 1024 that is 16 halves of an ε at the very worst of four lanes, and far less with sixteen. Tests
/// print the worst ratio that they see.
inline constexpr double kMatmulBound = 4;

}  // namespace headway::testing
