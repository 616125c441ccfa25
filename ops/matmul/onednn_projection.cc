// The projection through oneDNN: the weights cut into column chunks, each reordered once into the layout its matmul
// asked for. Decides between writing a chunk straight into y and through a dense scratch. Knows nothing of heads.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ops/base/workspace_layout.h"
#include "ops/matmul/matmul_split.h"
#include "ops/matmul/onednn_adapter.h"
#include "ops/matmul/onednn_bf16_check.h"
#include "ops/matmul/projection.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

bool is_blocked_kernel(const onednn::Matmul& matmul) { return matmul.implementation().rfind("br", 0) == 0; }

/// The matmul of one block size.
struct Variant {
  std::unique_ptr<onednn::Matmul> matmul;
  bool through_scratch = false;  // c is dense in the worker's scratch and copied to y
};

struct BlockShape {
  std::int64_t rows, columns;
};

onednn::MatmulDescs descs_of(const PlannedMatmulSpec& spec, BlockShape block, std::int64_t c_stride, bool with_bias) {
  onednn::MatmulDescs d;
  d.a = onednn::matrix_desc(block.rows, spec.depth, spec.x_stride, spec.type);
  d.b = onednn::any_desc(spec.depth, block.columns, spec.type);
  d.c = onednn::matrix_desc(block.rows, block.columns, c_stride, spec.type);
  d.with_bias = with_bias;
  if (with_bias) d.bias = onednn::matrix_desc(1, block.columns, block.columns);
  return d;
}

/// oneDNN 2.6 runs its blocked kernel, with packed weights, only on dense results, and its plain GEMM otherwise. The
/// copy from a dense scratch costs a fraction of a cycle an element where the product costs depth / 32 (16 lanes).
Variant make_variant(const PlannedMatmulSpec& spec, BlockShape block, bool with_bias) {
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

class OnednnProjection final : public Projection {
 public:
  explicit OnednnProjection(const ProjectionSource& source);

  std::string explain() const override;
  std::size_t workspace_bytes(int workers) const override { return layout_.bytes(workers); }
  std::int64_t tasks() const override { return row_blocks_ * chunks_; }
  void run_task(std::int64_t task, int worker, const void* x, void* y, std::byte* workspace) const override;
  Work task_work(std::int64_t task) const override;
  MatmulTile task_tile(std::int64_t task) const override {
    const std::int64_t block = task % row_blocks_;
    const std::int64_t chunk = task / row_blocks_;
    return {block * split_.row_block, rows_of(block), chunk * split_.column_block, columns_of(chunk)};
  }

 private:
  PlannedMatmulSpec spec_;
  MatmulSplit split_;
  std::int64_t row_blocks_ = 0;
  std::int64_t chunks_ = 0;
  bool with_bias_ = false;
  Variant variants_[2][2];              // [row block is the smaller last one][chunk is the smaller last one]
  std::vector<PackedChunk> packed_[2];  // per chunk; [1] only where the last row block has another layout
  bool last_rows_packed_apart_[2] = {false, false};  // by whether the chunk is the last one
  WorkspaceLayout layout_;
  WorkspaceArray<std::byte> scratchpad_, dense_;
  std::int64_t element_bytes_ = sizeof(float);  // of x, weight and y

  std::int64_t rows_of(std::int64_t block) const {
    return std::min(split_.row_block, spec_.rows - block * split_.row_block);
  }
  std::int64_t columns_of(std::int64_t chunk) const {
    return std::min(split_.column_block, spec_.columns - chunk * split_.column_block);
  }
  int smaller_rows(std::int64_t block) const { return rows_of(block) != rows_of(0) ? 1 : 0; }
  int smaller_columns(std::int64_t chunk) const { return columns_of(chunk) != columns_of(0) ? 1 : 0; }

  void make_variants();
  void pack(const ConstTensorView& weight, const float* bias);
  PackedChunk pack_chunk(const ConstTensorView& rows, const dnnl::memory::desc& layout, const float* bias) const;
};

void OnednnProjection::make_variants() {
  for (const std::int64_t chunk : {std::int64_t{0}, chunks_ - 1}) {
    const int c = smaller_columns(chunk);
    for (const std::int64_t block : {std::int64_t{0}, row_blocks_ - 1}) {
      Variant& variant = variants_[smaller_rows(block)][c];
      if (!variant.matmul) variant = make_variant(spec_, {rows_of(block), columns_of(chunk)}, with_bias_);
    }
    const Variant& last = variants_[1][c];
    last_rows_packed_apart_[c] = last.matmul && last.matmul->b_desc() != variants_[0][c].matmul->b_desc();
  }
  std::size_t scratchpad_bytes = 0;
  bool through_scratch = false;
  for (const auto& by_columns : variants_) {
    for (const Variant& variant : by_columns) {
      if (!variant.matmul) continue;
      scratchpad_bytes = std::max(scratchpad_bytes, variant.matmul->scratch_bytes());
      through_scratch = through_scratch || variant.through_scratch;
    }
  }
  scratchpad_ = layout_.per_worker<std::byte>(static_cast<std::int64_t>(scratchpad_bytes));
  const std::int64_t dense_bytes = element_bytes_ * split_.row_block * split_.column_block;
  dense_ = layout_.per_worker<std::byte>(through_scratch ? dense_bytes : 0);
}

/// `rows` is [columns of the chunk, K].
PackedChunk OnednnProjection::pack_chunk(const ConstTensorView& rows, const dnnl::memory::desc& layout,
                                         const float* bias) const {
  Tensor dense(spec_.type, rows.dims);
  copy_elements(rows, dense.view());
  PackedChunk chunk;
  chunk.weights = AlignedBuffer(layout.get_size());
  chunk.weights_memory = dnnl::memory(layout, onednn::engine(), chunk.weights.data());
  const dnnl::memory::desc plain = onednn::transposed_desc(rows.dims[0], spec_.depth, spec_.depth, spec_.type);
  onednn::reorder(dnnl::memory(plain, onednn::engine(), dense.view().data), chunk.weights_memory);
  if (with_bias_) {
    const std::int64_t columns = rows.dims[0];
    chunk.bias = AlignedBuffer(sizeof(float) * static_cast<std::size_t>(columns));
    std::memcpy(chunk.bias.data(), bias, chunk.bias.size_bytes());
    chunk.bias_memory = dnnl::memory(onednn::matrix_desc(1, columns, columns), onednn::engine(), chunk.bias.data());
  }
  return chunk;
}

void OnednnProjection::pack(const ConstTensorView& weight, const float* bias) {
  packed_[1].resize(static_cast<std::size_t>(chunks_));
  for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
    const std::int64_t begin = chunk * split_.column_block;
    const ConstTensorView rows = weight.sliced(0, begin, begin + columns_of(chunk));
    const int c = smaller_columns(chunk);
    const float* const chunk_bias = with_bias_ ? bias + begin : nullptr;
    packed_[0].push_back(pack_chunk(rows, variants_[0][c].matmul->b_desc(), chunk_bias));
    if (!last_rows_packed_apart_[c]) continue;
    packed_[1][static_cast<std::size_t>(chunk)] = pack_chunk(rows, variants_[1][c].matmul->b_desc(), chunk_bias);
  }
}

OnednnProjection::OnednnProjection(const ProjectionSource& source)
    : spec_(source.spec),
      split_(split_matmul(spec_.rows, spec_.columns)),
      with_bias_(source.bias != nullptr),
      element_bytes_(static_cast<std::int64_t>(size_bytes(spec_.type))) {
  if (spec_.rows == 0 || spec_.columns == 0) return;
  row_blocks_ = ceil_div(spec_.rows, split_.row_block);
  chunks_ = ceil_div(spec_.columns, split_.column_block);
  make_variants();
  pack(source.weight, source.bias);
}

std::string OnednnProjection::explain() const {
  if (tasks() == 0) return "nothing to do";
  const Variant& main = variants_[0][0];
  return "onednn " + main.matmul->implementation() + (spec_.type == DataType::kBF16 ? " in bf16, " : ", ") +
         std::to_string(tasks()) + " tasks of " + std::to_string(split_.row_block) + " × " +
         std::to_string(split_.column_block) + (main.through_scratch ? ", through a dense scratch" : "");
}

void OnednnProjection::run_task(std::int64_t task, int worker, const void* x, void* y, std::byte* workspace) const {
  const std::int64_t chunk = task / row_blocks_;
  const std::int64_t block = task % row_blocks_;
  const int r = smaller_rows(block);
  const int c = smaller_columns(chunk);
  const Variant& variant = variants_[r][c];
  const bool apart = r == 1 && last_rows_packed_apart_[c];
  const PackedChunk& chunk_weights = packed_[apart ? 1 : 0][static_cast<std::size_t>(chunk)];
  const std::int64_t row = block * split_.row_block;
  const std::byte* source = static_cast<const std::byte*>(x) + element_bytes_ * row * spec_.x_stride;
  std::byte* target =
      static_cast<std::byte*>(y) + element_bytes_ * (row * spec_.y_stride + chunk * split_.column_block);

  std::byte* const region = layout_.worker_region(workspace, worker);
  std::byte* const dense = dense_.in(region);
  variant.matmul->execute({.a = source,
                           .b = nullptr,
                           .b_memory = handle(chunk_weights.weights_memory),
                           .bias_memory = handle(chunk_weights.bias_memory),
                           .c = variant.through_scratch ? dense : target,
                           .scratch = scratchpad_.in(region)});
  if (!variant.through_scratch) return;
  const std::int64_t row_bytes = element_bytes_ * columns_of(chunk);
  for (std::int64_t i = 0; i < rows_of(block); ++i) {
    std::memcpy(target + i * element_bytes_ * spec_.y_stride, dense + i * row_bytes,
                static_cast<std::size_t>(row_bytes));
  }
}

Work OnednnProjection::task_work(std::int64_t task) const {
  const std::int64_t rows = rows_of(task % row_blocks_);
  const std::int64_t columns = columns_of(task / row_blocks_);
  const std::int64_t flops = 2 * rows * columns * spec_.depth;
  const std::int64_t elements = rows * spec_.depth + columns * spec_.depth + rows * columns;
  return {.flops_nominal = flops, .flops_executed = flops, .bytes = element_bytes_ * elements};
}

}  // namespace

std::unique_ptr<const Projection> make_onednn_projection(const ProjectionSource& source) {
  if (source.spec.type == DataType::kBF16) {
    // By name one may ask for what the table would not choose, but not for what cannot be right.
    if (source.spec.depth % onednn::kBf16DepthMultiple != 0) {
      fail(ErrorCode::kUnsupported, "matmul implementation 'onednn' in bf16 has depth ", source.spec.depth,
           ", expected a multiple of ", onednn::kBf16DepthMultiple);
    }
    const std::string& refusal = onednn::packed_bf16_refusal();
    if (!refusal.empty()) fail(ErrorCode::kUnsupported, "matmul implementation 'onednn' in bf16: ", refusal);
  }
  return onednn::translate_errors("make a projection", [&] { return std::make_unique<OnednnProjection>(source); });
}

}  // namespace headway
