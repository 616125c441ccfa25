// The order of a decoder's steps, and the memory between them.
#include "tools/engine/decoder.h"

#include <algorithm>
#include <cmath>

#include "headway/error.h"
#include "tools/engine/checkpoint.h"
#include "tools/engine/weights.h"

namespace headway::engine {
namespace {

CachedAttentionSpec attention_limits(const DecoderConfig& config, const DecoderLimits& limits) {
  CachedAttentionSpec spec;
  spec.cache_type = limits.cache_type;
  spec.batch_invariant = limits.batch_invariant;
  spec.max_batch = limits.max_batch;
  spec.max_tokens = limits.max_tokens;
  spec.max_cache = std::min(config.positions, limits.blocks * limits.block_size);
  return spec;
}

/// Keys and values of one layer.
struct LayerCache {
  Tensor key, value;
};

}  // namespace

struct Decoder::Impl {
  Impl(const std::string& folder, const DecoderLimits& given, const Threads& t)
      : config(read_config(folder + "/config.json")),
        limits(given),
        threads(t),
        attention(attention_limits(config, given)),
        weights(load_weights(Checkpoint(folder), config, attention)) {
    const Dims cache = {limits.blocks, config.num_kv_heads, limits.block_size, config.head_dim};
    std::size_t bytes = weights.logits->workspace_bytes(threads.workers());
    for (const DecoderLayer& layer : weights.layers) {
      caches.push_back({Tensor(limits.cache_type, cache), Tensor(limits.cache_type, cache)});
      bytes = std::max({bytes, layer.attention.workspace_bytes(threads.workers()),
                        layer.up.workspace_bytes(threads.workers()), layer.down.workspace_bytes(threads.workers())});
    }
    workspace = AlignedBuffer(bytes);
    const auto tokens = static_cast<std::size_t>(limits.max_tokens);
    const auto width = static_cast<std::size_t>(config.width);
    stream.resize(tokens * width);
    normed.resize(tokens * width);
    change.resize(tokens * width);
    inner.resize(tokens * static_cast<std::size_t>(config.ffn_width));
  }

  void embed(const Batch& batch);
  void attend(std::size_t index, const Batch& batch, std::int64_t tokens, Profiler* profiler);
  void feed_forward(const DecoderLayer& layer, std::int64_t tokens, Profiler* profiler);
  /// stream += norm(change).
  void add_change(const Norm& norm, std::int64_t tokens);

  TensorView rows(std::vector<float>* buffer, std::int64_t tokens, std::int64_t width) const {
    return view_of(buffer->data(), {tokens, width});
  }

  DecoderConfig config;
  DecoderLimits limits;
  Threads threads;
  CachedAttentionSpec attention;
  DecoderWeights weights;
  std::vector<LayerCache> caches;
  AlignedBuffer workspace;
  std::vector<float> stream, normed, change, inner;  // [max_tokens, E], the last [max_tokens, ffn_width]
};

Decoder::Decoder(const std::string& folder, const DecoderLimits& limits, const Threads& threads)
    : impl_(std::make_unique<Impl>(folder, limits, threads)) {}
Decoder::~Decoder() = default;

const DecoderConfig& Decoder::config() const { return impl_->config; }
std::int64_t Decoder::max_length() const { return impl_->attention.max_cache; }
std::int64_t Decoder::parameters() const { return impl_->weights.parameters; }

std::int64_t Decoder::cache_bytes() const {
  std::int64_t bytes = 0;
  for (const LayerCache& cache : impl_->caches) {
    bytes += 2 * cache.key.count() * static_cast<std::int64_t>(size_bytes(impl_->limits.cache_type));
  }
  return bytes;
}

std::string Decoder::explain() const {
  const DecoderLayer& layer = impl_->weights.layers.front();
  return layer.attention.explain() + "\nfeed-forward: " + layer.up.explain() +
         "\nlogits: " + impl_->weights.logits->explain();
}

void Decoder::Impl::embed(const Batch& batch) {
  const std::int64_t width = config.width;
  for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
    const std::int64_t first = batch.query_starts[b], end = batch.query_starts[b + 1];
    for (std::int64_t t = first; t < end; ++t) {
      const std::int32_t id = batch.tokens[static_cast<std::size_t>(t)];
      detail::require(id >= 0 && id < config.vocab, "token is ", id, ", expected below vocab_size = ", config.vocab);
      const float* const from = weights.embedding.data() + id * width;
      float* const to = stream.data() + t * width;
      for (std::int64_t c = 0; c < width; ++c) to[c] = from[c] * config.embedding_scale;
      if (weights.positions.empty()) continue;
      const float* const place = weights.positions.data() + (batch.lengths[b] - end + t) * width;
      for (std::int64_t c = 0; c < width; ++c) to[c] += place[c];
    }
  }
}

void Decoder::Impl::add_change(const Norm& norm, std::int64_t tokens) {
  norm.run(change.data(), change.data(), tokens, threads);
  for (std::int64_t i = 0; i < tokens * config.width; ++i)
    stream[static_cast<std::size_t>(i)] += change[static_cast<std::size_t>(i)];
}

void Decoder::Impl::attend(std::size_t index, const Batch& batch, std::int64_t tokens, Profiler* profiler) {
  const DecoderLayer& layer = weights.layers[index];
  const auto count = static_cast<std::int64_t>(batch.lengths.size());
  layer.attention_norm.run(stream.data(), normed.data(), tokens, threads);
  CachedMultiHeadAttentionArgs args;
  args.x = rows(&normed, tokens, config.width);
  args.attention.query_starts = view_of(batch.query_starts.data(), {count + 1});
  args.attention.lengths = view_of(batch.lengths.data(), {count});
  args.cache.key = caches[index].key.view();
  args.cache.value = caches[index].value.view();
  args.cache.block_table = view_of(batch.block_table.data(), {count, batch.table_width});
  const bool normed_after = static_cast<bool>(layer.attention_end_norm);
  args.out = rows(normed_after ? &change : &stream, tokens, config.width);
  if (!normed_after) args.residual = args.out;
  layer.attention.run(args, workspace.data(), threads, profiler);
  if (normed_after) add_change(layer.attention_end_norm, tokens);
}

void Decoder::Impl::feed_forward(const DecoderLayer& layer, std::int64_t tokens, Profiler* profiler) {
  layer.ffn_norm.run(stream.data(), normed.data(), tokens, threads);
  PackedMatmulArgs up;
  up.x = rows(&normed, tokens, config.width);
  up.out = rows(&inner, tokens, config.ffn_width);
  layer.up.run(up, workspace.data(), threads, profiler);
  PackedMatmulArgs down;
  down.x = up.out;
  const bool normed_after = static_cast<bool>(layer.ffn_end_norm);
  down.out = rows(normed_after ? &change : &stream, tokens, config.width);
  if (!normed_after) down.residual = down.out;
  layer.down.run(down, workspace.data(), threads, profiler);
  if (normed_after) add_change(layer.ffn_end_norm, tokens);
}

void Decoder::run(const Batch& batch, const std::vector<std::int64_t>& rows, float* logits, Profiler* profiler) {
  Impl& d = *impl_;
  const auto tokens = static_cast<std::int64_t>(batch.tokens.size());
  detail::require(tokens <= d.limits.max_tokens, "batch has ", tokens,
                  " tokens, expected at most max_tokens = ", d.limits.max_tokens);
  d.embed(batch);
  for (std::size_t i = 0; i < d.weights.layers.size(); ++i) {
    d.attend(i, batch, tokens, profiler);
    d.feed_forward(d.weights.layers[i], tokens, profiler);
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  for (std::int64_t r = 0; r < count; ++r) {
    std::copy_n(d.stream.data() + rows[static_cast<std::size_t>(r)] * d.config.width, d.config.width,
                d.normed.data() + r * d.config.width);
  }
  d.weights.end_norm.run(d.normed.data(), d.normed.data(), count, d.threads);
  PackedMatmulArgs args;
  args.x = d.rows(&d.normed, count, d.config.width);
  args.out = view_of(logits, {count, d.config.vocab});
  d.weights.logits->run(args, d.workspace.data(), d.threads, profiler);
  const float cap = d.config.logit_softcap;
  if (cap == 0) return;
  for (std::int64_t i = 0; i < count * d.config.vocab; ++i) logits[i] = cap * std::tanh(logits[i] / cap);
}

}  // namespace headway::engine
