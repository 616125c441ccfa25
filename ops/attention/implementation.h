// What one way of running attention looks like, and the ordered table of them. Knows none of them by type.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headway/attention.h"

namespace headway {

/// Immutable after creation; run() is re-entrant with distinct workspaces and allocates nothing. The spec it was made
/// from is complete (defaults filled in) and valid, and the arguments of run() have been checked against it.
class AttentionImplementation {
 public:
  virtual ~AttentionImplementation() = default;
  /// Tile sizes, SIMD target, workspace: one line, without the name.
  virtual std::string explain() const = 0;
  virtual std::size_t workspace_bytes(int workers) const = 0;
  virtual void run(const AttentionArgs& args, std::byte* workspace, const Threads& threads,
                   Profiler* profiler) const = 0;
};

struct ImplementationEntry {
  const char* name;
  /// Why it cannot run this spec; empty: it can.
  std::string (*why_impossible)(const AttentionSpec& spec);
  /// Why a later one is better although this one can; empty: none is. Not asked when it was forced by name.
  std::string (*why_not_preferred)(const AttentionSpec& spec);
  std::unique_ptr<const AttentionImplementation> (*create)(const AttentionSpec& spec);
};

/// Best first, reference last.
std::span<const ImplementationEntry> implementation_table();

/// Each implementation is one folder-private pair of these; the table in implementation_order.cc lists them.
std::string few_queries_why_impossible(const AttentionSpec& spec);
std::string few_queries_why_not_preferred(const AttentionSpec& spec);
std::unique_ptr<const AttentionImplementation> make_few_queries(const AttentionSpec& spec);
std::string tiled_why_impossible(const AttentionSpec& spec);
std::string tiled_why_not_preferred(const AttentionSpec& spec);
std::unique_ptr<const AttentionImplementation> make_tiled(const AttentionSpec& spec);
std::string bf16_pairs_why_impossible(const AttentionSpec& spec);
std::string bf16_pairs_why_not_preferred(const AttentionSpec& spec);
std::unique_ptr<const AttentionImplementation> make_bf16_pairs(const AttentionSpec& spec);
std::string onednn_tiles_why_impossible(const AttentionSpec& spec);
std::unique_ptr<const AttentionImplementation> make_onednn_tiles(const AttentionSpec& spec);
std::string reference_why_impossible(const AttentionSpec& spec);
std::unique_ptr<const AttentionImplementation> make_reference(const AttentionSpec& spec);

}  // namespace headway
