// Creation through the C++ interface, where the two major versions differ; execution through the C interface, which
// takes its arguments from the stack where the C++ one needs a map built for each call.
#include "ops/matmul/onednn_adapter.h"

#include <omp.h>

#include <algorithm>
#include <thread>

#include "headway/error.h"
#include "headway/tensor.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/onednn_version.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"

namespace headway::onednn {
namespace {

using Desc = dnnl::memory::desc;

dnnl::memory::data_type dnnl_type(DataType type) {
  if (type == DataType::kF32) return dnnl::memory::data_type::f32;
  if (type == DataType::kBF16) return dnnl::memory::data_type::bf16;
  fail(ErrorCode::kInternal, "oneDNN matmul is ", type_name(type), ", expected f32 or bf16");
}

/// A small number per thread: the place where it looks for a slot first.
unsigned thread_number() {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

dnnl::primitive_attr attributes(bool accumulate) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  // The environment may allow bf16 arithmetic for f32 tensors in the whole process; our error bound does not.
  attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  if (accumulate) {
    dnnl::post_ops ops;
    ops.append_sum(1.0f);
    attr.set_post_ops(ops);
  }
  return attr;
}

dnnl::matmul::primitive_desc describe(const MatmulDescs& d) {
  const dnnl::primitive_attr attr = attributes(d.accumulate);
#if DNNL_VERSION_MAJOR >= 3
  if (d.with_bias) return {engine(), d.a, d.b, d.bias, d.c, attr};
  return {engine(), d.a, d.b, d.c, attr};
#else
  if (d.with_bias) return {dnnl::matmul::desc(d.a, d.b, d.bias, d.c), attr, engine()};
  return {dnnl::matmul::desc(d.a, d.b, d.c), attr, engine()};
#endif
}

dnnl::memory memory_without_data(const Desc& desc) { return dnnl::memory(desc, engine(), DNNL_MEMORY_NONE); }

}  // namespace

SingleThread::SingleThread() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}

SingleThread::~SingleThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

void throw_error(const dnnl::error& error, const char* what) {
  if (error.status == dnnl_out_of_memory) throw_out_of_memory();
  fail(ErrorCode::kInternal, "oneDNN cannot ", what, ": ", error.what());
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu = [] {
    require_same_onednn(DNNL_VERSION_MAJOR, dnnl_version()->major);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return cpu;
}

Desc matrix_desc(std::int64_t rows, std::int64_t columns, std::int64_t stride, DataType type) {
  const auto element = dnnl_type(type);
  // oneDNN 3.7 takes the rows of a single column for contiguous when one of the strides is 1.
  if (columns == 1 && rows > 1) return Desc({rows, columns}, element, dnnl::memory::dims{stride, stride * rows});
  return Desc({rows, columns}, element, dnnl::memory::dims{rows == 1 ? columns : stride, 1});
}

Desc transposed_desc(std::int64_t rows, std::int64_t columns, std::int64_t stride, DataType type) {
  return Desc({columns, rows}, dnnl_type(type), dnnl::memory::dims{1, rows == 1 ? columns : stride});
}

Desc any_desc(std::int64_t rows, std::int64_t columns, DataType type) {
  return Desc({rows, columns}, dnnl_type(type), dnnl::memory::format_tag::any);
}

bool cpu_multiplies_bf16() {
  // The mask of an instruction set includes those that it builds on.
  constexpr unsigned kRequired = dnnl_cpu_isa_avx512_core_bf16;
  return (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & kRequired) == kRequired;
}

struct Matmul::Slot {
  dnnl::stream stream;
  dnnl::memory a, b, c, scratch;
};

Matmul::Matmul(const MatmulDescs& descs) {
  const SingleThread guard;
  try {
    primitive_desc_ = describe(descs);
    primitive_ = dnnl::matmul(primitive_desc_);
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) throw_out_of_memory();
    fail(ErrorCode::kInternal, "oneDNN has no matmul for operands of ", descs.a.get_size(), " and ", descs.c.get_size(),
         " bytes: ", e.what());
  }
  implementation_ = primitive_desc_.impl_info_str();
  scratch_bytes_ = primitive_desc_.scratchpad_desc().get_size();
  fill_pool();
}

Matmul::Place::~Place() { delete slot.load(std::memory_order_relaxed); }
Matmul::~Matmul() = default;

std::unique_ptr<Matmul::Slot> Matmul::make_slot() const try {
  auto slot = std::make_unique<Slot>();
  slot->stream = dnnl::stream(engine());
  slot->a = memory_without_data(primitive_desc_.src_desc());
  slot->b = memory_without_data(primitive_desc_.weights_desc());
  slot->c = memory_without_data(primitive_desc_.dst_desc());
  slot->scratch = memory_without_data(primitive_desc_.scratchpad_desc());
  return slot;
} catch (const dnnl::error& e) {
  throw_error(e, "make the memory objects of a matmul");
}

/// A slot per hardware thread, so that a warm run allocates nothing even when two workers are in the same product for
/// the first time.
void Matmul::fill_pool() {
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 4u, unsigned{kPlaces});
  for (unsigned i = 0; i < threads; ++i) places_[i].slot.store(make_slot().release(), std::memory_order_relaxed);
}

std::unique_ptr<Matmul::Slot> Matmul::borrow() const {
  const unsigned first = thread_number();
  for (unsigned i = 0; i < kPlaces; ++i) {
    std::atomic<Slot*>& place = places_[(first + i) % kPlaces].slot;
    if (!place.load(std::memory_order_relaxed)) continue;
    if (Slot* slot = place.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Slot>(slot);
  }
  {
    const std::lock_guard lock(overflow_mutex_);
    if (!overflow_.empty()) {
      std::unique_ptr<Slot> slot = std::move(overflow_.back());
      overflow_.pop_back();
      return slot;
    }
  }
  return make_slot();
}

void Matmul::give_back(std::unique_ptr<Slot> slot) const {
  const unsigned first = thread_number();
  for (unsigned i = 0; i < kPlaces; ++i) {
    std::atomic<Slot*>& place = places_[(first + i) % kPlaces].slot;
    Slot* nobody = nullptr;
    if (place.compare_exchange_strong(nobody, slot.get(), std::memory_order_release, std::memory_order_relaxed)) {
      slot.release();
      return;
    }
  }
  const std::lock_guard lock(overflow_mutex_);
  overflow_.push_back(std::move(slot));
}

void Matmul::execute(const MatmulOperands& operands) const {
  std::unique_ptr<Slot> slot = borrow();
  slot->a.set_data_handle(const_cast<void*>(operands.a));
  if (!operands.b_memory) slot->b.set_data_handle(const_cast<void*>(operands.b));
  slot->c.set_data_handle(operands.c);
  slot->scratch.set_data_handle(operands.scratch);

  dnnl_exec_arg_t args[5] = {{DNNL_ARG_SRC, slot->a.get()},
                             {DNNL_ARG_WEIGHTS, operands.b_memory ? operands.b_memory : slot->b.get()},
                             {DNNL_ARG_DST, slot->c.get()},
                             {DNNL_ARG_SCRATCHPAD, slot->scratch.get()},
                             {DNNL_ARG_BIAS, operands.bias_memory}};
  dnnl_status_t status;
  {
    const SingleThread guard;
    status = dnnl_primitive_execute(primitive_.get(), slot->stream.get(), operands.bias_memory ? 5 : 4, args);
  }
  give_back(std::move(slot));
  if (status == dnnl_out_of_memory) throw_out_of_memory();
  if (status != dnnl_success) fail(ErrorCode::kInternal, "oneDNN matmul failed with status ", status);
}

void reorder(dnnl::memory from, dnnl::memory to) try {
  const SingleThread guard;
  const dnnl::primitive_attr attr = attributes(false);
  const dnnl::reorder::primitive_desc desc(engine(), from.get_desc(), engine(), to.get_desc(), attr);
  const AlignedBuffer scratch(desc.scratchpad_desc().get_size() + 64);
  dnnl::memory scratch_memory(desc.scratchpad_desc(), engine(), scratch.data());
  dnnl::stream stream(engine());
  dnnl::reorder(desc).execute(stream,
                              {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, scratch_memory}});
  stream.wait();
} catch (const dnnl::error& e) {
  throw_error(e, "reorder a matrix");
}

}  // namespace headway::onednn
