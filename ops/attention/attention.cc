// Attention: completes the spec, picks the first implementation that can (or the one asked for), checks every run.
// Knows implementations only through their table.
#include "headway/attention.h"

#include <cstdlib>
#include <cstring>

#include "ops/attention/check_args.h"
#include "ops/attention/epilogue/log_sum_exp.h"
#include "ops/attention/implementation.h"
#include "ops/attention/observer.h"
#include "ops/attention/run_checked.h"
#include "ops/attention/spec.h"
#include "ops/base/hidden_score.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// Without a key there is nothing to add up: the context is 0 whatever empty_row says of rows whose keys are all
/// hidden, as a product of matrices over no columns is, and there is no score to write.
void write_no_keys(const AttentionArgs& args) {
  const TensorView& out = args.out;
  const auto bytes = static_cast<std::size_t>(size_bytes(out.type));
  for (std::int64_t i = 0; i < out.count(); ++i) {
    std::int64_t rest = i, at = 0;
    for (int axis = out.rank() - 1; axis >= 0; --axis) {
      at += rest % out.dims[axis] * out.strides[axis];
      rest /= out.dims[axis];
    }
    std::memset(out.data + at * static_cast<std::int64_t>(bytes), 0, bytes);
  }
  if (args.log_sum_exp) fill_log_sum_exp(args.log_sum_exp, kHiddenScore);
}

constexpr const char* kVariable = "HEADWAY_ATTENTION";

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

struct Attention::Impl {
  Impl(const AttentionSpec& given, const AttentionOptions& options) : spec(complete_spec(given)) {
    const Request request = requested(options);
    const bool forced = !request.implementation.empty();
    if (forced) refusals = std::string("\n  forced by ") + request.source;
    const ImplementationEntry& entry = forced ? forced_entry(request, spec) : first_that_can(spec, &refusals);
    name = entry.name;
    implementation = entry.create(spec);
  }

  const AttentionSpec spec;
  std::string_view name;
  std::unique_ptr<const AttentionImplementation> implementation;
  std::string refusals;
};

Attention::Attention(const AttentionSpec& spec, const AttentionOptions& options)
    : impl_(translate_bad_alloc([&] { return std::make_unique<const Impl>(spec, options); })) {}
Attention::~Attention() = default;
Attention::Attention(Attention&&) noexcept = default;
Attention& Attention::operator=(Attention&&) noexcept = default;

const AttentionSpec& Attention::spec() const { return impl_->spec; }

std::string_view Attention::implementation() const { return impl_->name; }

std::string Attention::explain() const {
  return std::string(impl_->name) + ": " + impl_->implementation->explain() + impl_->refusals;
}

std::size_t Attention::workspace_bytes(int workers) const { return impl_->implementation->workspace_bytes(workers); }

void AttentionInternals::run_checked(const Attention& attention, const AttentionArgs& args, std::byte* workspace,
                                     const Threads& threads, Profiler* profiler) {
  const AttentionSpec& spec = attention.spec();
  if (spec.batch * spec.num_heads * spec.query_len == 0) return;  // nothing to write, so nothing to read either
  observe_attention(spec, args);
  if (spec.key_len == 0) return write_no_keys(args);
  attention.impl_->implementation->run(args, workspace, threads, profiler);
}

void Attention::run(const AttentionArgs& args, std::byte* workspace, const Threads& threads, Profiler* profiler) const
    try {
  const AttentionSpec& spec = impl_->spec;
  check_args(spec, args);
  check_workspace(workspace, workspace_bytes(threads.workers()), threads.workers());
  AttentionInternals::run_checked(*this, args, workspace, threads, profiler);
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace headway
