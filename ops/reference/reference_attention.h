// Attention in double, row by row, as the formula reads: the oracle of the tests and the last resort of the library.
// Decides nothing about speed; has its own reading of every mask rule, so that it can disagree with ops/attention.
#pragma once

#include <cstdint>

#include "headway/attention.h"

namespace headway {

/// Some query rows of one head of one batch entry.
struct ReferenceRows {
  std::int64_t batch;
  std::int64_t head;  ///< of the Hq query heads
  std::int64_t query_begin;
  std::int64_t query_end;
};

/// Computes `rows` of args.out and, where spec.scores_output asks for them, of args.scores, and of args.log_sum_exp
/// where it is given. Query, key and value are f32, bf16 or f64 (all three the same); out is f32, bf16 or f64, and
/// scores and log_sum_exp f32 or f64, whatever the inputs are; any strides. Everything in between is double, and
/// results are rounded once. The arguments must be valid for the spec; defaults that are not filled in have their
/// documented meaning.
///
/// A key that is hidden (by a mask, the causal limit, the window or a length) is never read, nor is its value, with
/// one exception: scores in mode kScaled and kSoftcapped are written for all Skv keys, so those keys are read.
/// For kMeanProbabilities p / Hq is added to what scores holds: the caller zeroes them and computes the heads in turn.
///
/// Returns the number of (query, key) pairs that were visible. Allocates nothing; needs no workspace. Thread-safe for
/// rows that do not overlap. Cost: 4·D + 2·Dv flops and two exps per visible pair.
std::int64_t reference_attention_rows(const AttentionSpec& spec, const AttentionArgs& args, const ReferenceRows& rows);

/// All rows of all heads on the calling thread; scores for kMeanProbabilities need not be zeroed.
void reference_attention(const AttentionSpec& spec, const AttentionArgs& args);

/// True when the integer rules (causal limit, window, length, always visible keys) let query i see key j.
bool reference_position_visible(const AttentionSpec& spec, const AttentionArgs& args, std::int64_t batch,
                                std::int64_t query, std::int64_t key);

/// One (query, key) pair of one head.
struct ReferencePair {
  std::int64_t batch;
  std::int64_t head;
  std::int64_t query;
  std::int64_t key;
};
/// Sum of all biases of the pair, −inf when anything hides it. A sum of finite masks never becomes −inf: it stops at
/// the lowest float, as the bias is an f32 number.
float reference_bias(const AttentionSpec& spec, const AttentionArgs& args, const ReferencePair& pair);

}  // namespace headway
