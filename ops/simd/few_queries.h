// Attention of a few query rows against many keys: memory bandwidth is the limit, so each key and value row is read
// once for all query rows, in four streams at a time. Keys and values are f32 or bf16 and are widened in registers:
// half the bytes take half the time. The steps on one block; knows no masks and no tasks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headway/tensor.h"

namespace headway {

/// Streams per step: one key from each quarter of the sequence. One sequential stream is bound by the misses that a
/// core has in flight (measured: half the bandwidth on Zen 3).
inline constexpr int kKeyStreams = 4;

/// Steps ahead of the one that is computed at which a kernel may ask for a row in order to prefetch it.
inline constexpr std::int64_t kPrefetchSteps = 4;

/// scores[r][s · steps + i] = queries[r] · key of step i in stream s.
template <class Real>
struct FewScores {
  using Element = Real;
  const Real* row(int stream, std::int64_t step) const { return key[stream] + step * key_stride; }

  const Real* key[kKeyStreams];  // first row of each stream; innermost stride 1
  std::int64_t key_stride;       // elements between keys
  std::int64_t steps;            // keys of each stream
  const float* queries;          // [rows, depth], scaled
  std::int64_t rows;
  std::int64_t depth;
  float* scores;  // [rows, row_stride]
  std::int64_t row_stride;
};

/// context[r] = rescale[r] · context[r] + Σ scores[r][s · steps + i] · value of step i in stream s.
template <class Real>
struct FewContext {
  using Element = Real;
  const Real* row(int stream, std::int64_t step) const { return value[stream] + step * value_stride; }

  const Real* value[kKeyStreams];
  std::int64_t value_stride;
  std::int64_t steps;
  const float* scores;  // [rows, row_stride], exps
  std::int64_t row_stride;
  std::int64_t rows;
  std::int64_t columns;
  const float* rescale;  // [rows]
  float* context;        // [rows, columns]
};

/// The same where each row has an address of its own, as those of a paged cache have. The tables hold kPrefetchSteps
/// more rows than steps; what these point to is prefetched, not read.
template <class Real>
struct FewPointedScores {
  using Element = Real;
  const Real* row(int stream, std::int64_t step) const { return reinterpret_cast<const Real*>(key[stream][step]); }

  const std::byte* const* key[kKeyStreams];  // [steps + kPrefetchSteps] each
  std::int64_t steps;
  const float* queries;
  std::int64_t rows;
  std::int64_t depth;
  float* scores;
  std::int64_t row_stride;
};
template <class Real>
struct FewPointedContext {
  using Element = Real;
  const Real* row(int stream, std::int64_t step) const { return reinterpret_cast<const Real*>(value[stream][step]); }

  const std::byte* const* value[kKeyStreams];  // [steps + kPrefetchSteps] each
  std::int64_t steps;
  const float* scores;
  std::int64_t row_stride;
  std::int64_t rows;
  std::int64_t columns;
  const float* rescale;
  float* context;
};

/// Running softmax of one row over n new scores, in place: exps, and the state.
struct FewSoftmax {
  float* scores;  // [n]
  std::int64_t n;
  float* maximum;
  float* sum;
  float* rescale;  // exp(old maximum − new)
};

/// Kernels of one target, resolved once at plan time.
struct FewQueriesKernels {
  const char* target;
  void (*score)(const FewScores<float>&);
  void (*score_bf16)(const FewScores<BFloat16>&);
  void (*softmax)(const FewSoftmax&);
  void (*context)(const FewContext<float>&);
  void (*context_bf16)(const FewContext<BFloat16>&);
};

/// Of the current target (target.h).
FewQueriesKernels few_queries_kernels();

/// The same over rows with addresses of their own, in one float type.
template <class Real>
struct FewPointedKernels {
  void (*score)(const FewPointedScores<Real>&);
  void (*context)(const FewPointedContext<Real>&);
};
struct FewPointedQueriesKernels {
  FewPointedKernels<float> f32;
  FewPointedKernels<BFloat16> bf16;
  FewPointedKernels<Float16> f16;
};

/// Of the current target (target.h).
FewPointedQueriesKernels few_pointed_queries_kernels();

}  // namespace headway
