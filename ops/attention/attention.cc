// Attention: completes the spec, picks the first implementation that can (or the one asked for), checks every run.
// Knows implementations only through their table.
#include "headway/attention.h"

#include <cstdlib>

#include "ops/attention/check_args.h"
#include "ops/attention/implementation.h"
#include "ops/attention/spec.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr const char* kVariable = "HEADWAY_ATTENTION";
constexpr std::size_t kWorkspaceAlignmentBytes = 64;

/// What was asked for by name, and by whom, for the message.
struct Request {
  std::string implementation;
  const char* source;
};

Request requested(const AttentionOptions& options) {
  if (!options.implementation.empty()) return {options.implementation, "options.implementation"};
  const char* value = std::getenv(kVariable);
  return {value ? value : "", kVariable};
}

const ImplementationEntry& entry_named(const Request& request) {
  std::string known;
  for (const ImplementationEntry& entry : implementation_table()) {
    if (entry.name == request.implementation) return entry;
    known += known.empty() ? "" : ", ";
    known += entry.name;
  }
  fail(ErrorCode::kInvalidArgument, request.source, " is '", request.implementation, "', expected one of ", known);
}

const ImplementationEntry& forced_entry(const Request& request, const AttentionSpec& spec) {
  const ImplementationEntry& entry = entry_named(request);
  if (const std::string reason = entry.why_impossible(spec); !reason.empty()) {
    fail(ErrorCode::kUnsupported, request.source, " is '", entry.name, "', which refuses this spec: ", reason);
  }
  return entry;
}

const ImplementationEntry& first_that_can(const AttentionSpec& spec, std::string* refusals) {
  for (const ImplementationEntry& entry : implementation_table()) {
    std::string reason = entry.why_impossible(spec);
    if (reason.empty()) reason = entry.why_not_preferred(spec);
    if (reason.empty()) return entry;
    *refusals += std::string("\n  not ") + entry.name + ": " + reason;
  }
  fail(ErrorCode::kInternal, "no attention implementation takes this spec", *refusals);
}

}  // namespace

Attention::Attention(const AttentionSpec& spec, const AttentionOptions& options) try : spec_(complete_spec(spec)) {
  const Request request = requested(options);
  const bool forced = !request.implementation.empty();
  if (forced) refusals_ = std::string("\n  forced by ") + request.source;
  const ImplementationEntry& entry = forced ? forced_entry(request, spec_) : first_that_can(spec_, &refusals_);
  name_ = entry.name;
  implementation_ = entry.create(spec_);
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

Attention::~Attention() = default;
Attention::Attention(Attention&&) noexcept = default;

const AttentionSpec& Attention::spec() const { return spec_; }

std::string_view Attention::implementation() const { return name_; }

std::string Attention::explain() const { return std::string(name_) + ": " + implementation_->explain() + refusals_; }

std::size_t Attention::workspace_bytes(int workers) const { return implementation_->workspace_bytes(workers); }

void Attention::run(const AttentionArgs& args, std::byte* workspace, const Threads& threads, Profiler* profiler) const
    try {
  check_args(spec_, args);
  if (const std::size_t bytes = workspace_bytes(threads.workers()); bytes > 0) {
    require(workspace != nullptr, "workspace is null, expected ", bytes, " bytes for ", threads.workers(), " workers");
    const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignmentBytes;
    require(misaligned == 0, "workspace is ", misaligned, " bytes past a multiple of ", kWorkspaceAlignmentBytes,
            ", expected 0");
  }
  if (spec_.batch * spec_.num_heads * spec_.query_len == 0) return;  // nothing to write, so nothing to read either
  implementation_->run(args, workspace, threads, profiler);
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace headway
