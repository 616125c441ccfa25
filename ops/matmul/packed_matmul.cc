// A projection through oneDNN: the weights cut into column chunks, each reordered once into the layout its matmul
// asked for. Decides between writing a chunk straight into y and through a dense scratch. Knows nothing of heads.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ops/matmul/matmul.h"
#include "ops/matmul/matmul_split.h"
#include "ops/matmul/onednn_adapter.h"

namespace headway {
namespace {

std::size_t round_up_to_line(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

bool is_blocked_kernel(const onednn::Matmul& matmul) { return matmul.implementation().rfind("br", 0) == 0; }

/// The matmul of one block size.
struct Variant {
  std::unique_ptr<onednn::Matmul> matmul;
  bool through_scratch = false;  // c is dense in the worker's scratch and copied to y
};

struct BlockShape {
  std::int64_t rows, columns;
};

onednn::MatmulDescs descs_of(const PackedMatmulSpec& spec, BlockShape block, std::int64_t c_stride, bool with_bias) {
  onednn::MatmulDescs d;
  d.a = onednn::matrix_desc(block.rows, spec.depth, spec.x_stride);
  d.b = onednn::any_desc(spec.depth, block.columns);
  d.c = onednn::matrix_desc(block.rows, block.columns, c_stride);
  d.with_bias = with_bias;
  if (with_bias) d.bias = onednn::matrix_desc(1, block.columns, block.columns);
  return d;
}

/// oneDNN 2.6 runs its blocked kernel, with packed weights, only on dense results, and its plain GEMM otherwise. The
/// copy from a dense scratch costs a fraction of a cycle an element where the product costs depth / 32 (16 lanes).
Variant make_variant(const PackedMatmulSpec& spec, BlockShape block, bool with_bias) {
  Variant direct{std::make_unique<onednn::Matmul>(descs_of(spec, block, spec.y_stride, with_bias)), false};
  if (is_blocked_kernel(*direct.matmul) || spec.y_stride == block.columns) return direct;
  Variant dense{std::make_unique<onednn::Matmul>(descs_of(spec, block, block.columns, with_bias)), true};
  return is_blocked_kernel(*dense.matmul) ? std::move(dense) : std::move(direct);
}

/// The weights and bias of one column chunk in one layout.
struct PackedChunk {
  AlignedBuffer weights;
  AlignedBuffer bias;
  dnnl::memory weights_memory;
  dnnl::memory bias_memory;
};

dnnl_memory_t handle(const dnnl::memory& memory) { return memory ? memory.get() : nullptr; }

}  // namespace

struct PackedMatmul::Impl {
  PackedMatmulSpec spec;
  MatmulSplit split;
  std::int64_t row_blocks = 0;
  std::int64_t chunks = 0;
  bool with_bias = false;
  Variant variants[2][2];              // [row block is the smaller last one][chunk is the smaller last one]
  std::vector<PackedChunk> packed[2];  // per chunk; [1] only where the last row block wants another layout
  bool last_rows_packed_apart[2] = {false, false};  // by whether the chunk is the last one
  std::vector<float> plain_bias;                    // for depth 0, which oneDNN does not take
  std::size_t worker_bytes = 0;

  std::int64_t rows_of(std::int64_t block) const {
    return std::min(split.row_block, spec.rows - block * split.row_block);
  }
  std::int64_t columns_of(std::int64_t chunk) const {
    return std::min(split.column_block, spec.columns - chunk * split.column_block);
  }
  int smaller_rows(std::int64_t block) const { return rows_of(block) != rows_of(0) ? 1 : 0; }
  int smaller_columns(std::int64_t chunk) const { return columns_of(chunk) != columns_of(0) ? 1 : 0; }

  void make_variants();
  void pack(const ConstTensorView& weight);
  PackedChunk pack_chunk(const ConstTensorView& rows, const dnnl::memory::desc& layout, const float* bias) const;
  void run_without_depth(std::int64_t block, std::int64_t chunk, float* y) const;
};

void PackedMatmul::Impl::make_variants() {
  for (const std::int64_t chunk : {std::int64_t{0}, chunks - 1}) {
    const int c = smaller_columns(chunk);
    for (const std::int64_t block : {std::int64_t{0}, row_blocks - 1}) {
      Variant& variant = variants[smaller_rows(block)][c];
      if (!variant.matmul) variant = make_variant(spec, {rows_of(block), columns_of(chunk)}, with_bias);
    }
    const Variant& last = variants[1][c];
    last_rows_packed_apart[c] = last.matmul && last.matmul->b_desc() != variants[0][c].matmul->b_desc();
  }
  std::size_t scratchpad_bytes = 0;
  bool through_scratch = false;
  for (const auto& by_columns : variants) {
    for (const Variant& variant : by_columns) {
      if (!variant.matmul) continue;
      scratchpad_bytes = std::max(scratchpad_bytes, variant.matmul->scratch_bytes());
      through_scratch = through_scratch || variant.through_scratch;
    }
  }
  worker_bytes = round_up_to_line(scratchpad_bytes);
  if (through_scratch) worker_bytes += round_up_to_line(sizeof(float) * split.row_block * split.column_block);
}

/// `rows` is [columns of the chunk, K].
PackedChunk PackedMatmul::Impl::pack_chunk(const ConstTensorView& rows, const dnnl::memory::desc& layout,
                                           const float* bias) const {
  Tensor dense(DataType::kF32, rows.dims);
  copy(rows, dense.view());
  PackedChunk chunk;
  chunk.weights = AlignedBuffer(layout.get_size());
  chunk.weights_memory = dnnl::memory(layout, onednn::engine(), chunk.weights.data());
  const dnnl::memory::desc plain = onednn::transposed_desc(rows.dims[0], spec.depth, spec.depth);
  onednn::reorder(dnnl::memory(plain, onednn::engine(), dense.data<float>()), chunk.weights_memory);
  if (with_bias) {
    const std::int64_t columns = rows.dims[0];
    chunk.bias = AlignedBuffer(sizeof(float) * static_cast<std::size_t>(columns));
    std::memcpy(chunk.bias.data(), bias, chunk.bias.size_bytes());
    chunk.bias_memory = dnnl::memory(onednn::matrix_desc(1, columns, columns), onednn::engine(), chunk.bias.data());
  }
  return chunk;
}

void PackedMatmul::Impl::pack(const ConstTensorView& weight) {
  packed[1].resize(static_cast<std::size_t>(chunks));
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t begin = chunk * split.column_block;
    const ConstTensorView rows = weight.sliced(0, begin, begin + columns_of(chunk));
    const int c = smaller_columns(chunk);
    const float* bias = with_bias ? plain_bias.data() + begin : nullptr;
    packed[0].push_back(pack_chunk(rows, variants[0][c].matmul->b_desc(), bias));
    if (!last_rows_packed_apart[c]) continue;
    packed[1][static_cast<std::size_t>(chunk)] = pack_chunk(rows, variants[1][c].matmul->b_desc(), bias);
  }
}

void PackedMatmul::Impl::run_without_depth(std::int64_t block, std::int64_t chunk, float* y) const {
  for (std::int64_t i = 0; i < rows_of(block); ++i) {
    float* row = y + (block * split.row_block + i) * spec.y_stride + chunk * split.column_block;
    for (std::int64_t j = 0; j < columns_of(chunk); ++j) {
      row[j] = with_bias ? plain_bias[static_cast<std::size_t>(chunk * split.column_block + j)] : 0.0f;
    }
  }
}

PackedMatmul::PackedMatmul(const PackedMatmulSpec& spec, const ConstTensorView& weight, const ConstTensorView& bias) {
  require(spec.rows >= 0 && spec.columns >= 0 && spec.depth >= 0, "matmul sizes are ", spec.rows, " x ", spec.columns,
          " x ", spec.depth, ", expected none below 0");
  require(weight.type == DataType::kF32, "weight is ", name(weight.type), ", expected f32");
  require(weight.dims == Dims{spec.columns, spec.depth}, "weight has dims ", weight.dims, ", expected ",
          Dims{spec.columns, spec.depth});
  require(spec.x_stride >= spec.depth, "x_stride is ", spec.x_stride, ", expected at least depth = ", spec.depth);
  require(spec.y_stride >= spec.columns, "y_stride is ", spec.y_stride, ", expected at least columns = ", spec.columns);
  auto impl = std::make_unique<Impl>();
  impl->spec = spec;
  impl->split = split_matmul(spec.rows, spec.columns);
  impl->with_bias = static_cast<bool>(bias);
  if (bias) {
    require(bias.type == DataType::kF32, "bias is ", name(bias.type), ", expected f32");
    require(bias.dims == Dims{spec.columns}, "bias has dims ", bias.dims, ", expected ", Dims{spec.columns});
    impl->plain_bias.resize(static_cast<std::size_t>(spec.columns));
    copy(bias, view_of(impl->plain_bias.data(), Dims{spec.columns}));
  }
  if (spec.rows > 0 && spec.columns > 0) {
    impl->row_blocks = ceil_div(spec.rows, impl->split.row_block);
    impl->chunks = ceil_div(spec.columns, impl->split.column_block);
    if (spec.depth > 0) {
      impl->make_variants();
      impl->pack(weight);
    }
  }
  impl_ = std::move(impl);
}

PackedMatmul::~PackedMatmul() = default;
PackedMatmul::PackedMatmul(PackedMatmul&&) noexcept = default;

std::string PackedMatmul::explain() const {
  if (tasks() == 0) return "nothing to do";
  if (impl_->spec.depth == 0) return "no depth: the bias alone";
  const Variant& main = impl_->variants[0][0];
  return "onednn " + main.matmul->implementation() + ", " + std::to_string(tasks()) + " tasks of " +
         std::to_string(impl_->split.row_block) + " × " + std::to_string(impl_->split.column_block) +
         (main.through_scratch ? ", through a dense scratch" : "");
}

std::size_t PackedMatmul::workspace_bytes(int workers) const {
  return impl_->worker_bytes * static_cast<std::size_t>(workers);
}

std::int64_t PackedMatmul::tasks() const { return impl_->row_blocks * impl_->chunks; }

void PackedMatmul::run_task(std::int64_t task, int worker, const float* x, float* y, std::byte* workspace) const {
  const Impl& m = *impl_;
  const std::int64_t chunk = task / m.row_blocks;
  const std::int64_t block = task % m.row_blocks;
  if (m.spec.depth == 0) return m.run_without_depth(block, chunk, y);
  const int r = m.smaller_rows(block);
  const int c = m.smaller_columns(chunk);
  const Variant& variant = m.variants[r][c];
  const bool apart = r == 1 && m.last_rows_packed_apart[c];
  const PackedChunk& packed = m.packed[apart ? 1 : 0][static_cast<std::size_t>(chunk)];
  const std::int64_t row = block * m.split.row_block;
  float* target = y + row * m.spec.y_stride + chunk * m.split.column_block;

  std::byte* scratch = workspace + m.worker_bytes * static_cast<std::size_t>(worker);
  auto* dense = reinterpret_cast<float*>(scratch + round_up_to_line(variant.matmul->scratch_bytes()));
  variant.matmul->execute({.a = x + row * m.spec.x_stride,
                           .b = nullptr,
                           .b_memory = handle(packed.weights_memory),
                           .bias_memory = handle(packed.bias_memory),
                           .c = variant.through_scratch ? dense : target,
                           .scratch = scratch});
  if (!variant.through_scratch) return;
  const std::int64_t columns = m.columns_of(chunk);
  for (std::int64_t i = 0; i < m.rows_of(block); ++i) {
    std::memcpy(target + i * m.spec.y_stride, dense + i * columns, sizeof(float) * static_cast<std::size_t>(columns));
  }
}

Work PackedMatmul::task_work(std::int64_t task) const {
  const Impl& m = *impl_;
  const std::int64_t rows = m.rows_of(task % m.row_blocks);
  const std::int64_t columns = m.columns_of(task / m.row_blocks);
  const std::int64_t flops = 2 * rows * columns * m.spec.depth;
  const std::int64_t floats = rows * m.spec.depth + columns * m.spec.depth + rows * columns;
  return {.flops_nominal = flops, .flops_executed = flops, .bytes = static_cast<std::int64_t>(sizeof(float)) * floats};
}

void PackedMatmul::run(const float* x, float* y, std::byte* workspace, const Threads& threads, Profiler* profiler,
                       const Zone& zone) const {
  threads.parallel_for(tasks(), [&](std::int64_t task, int worker) {
    ProfileScope scope(profiler, worker, zone);
    run_task(task, worker, x, y, workspace);
    if (profiler) scope.add(task_work(task));
  });
}

}  // namespace headway
