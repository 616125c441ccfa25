// The C API's product with packed weights.
#include "headway/packed_matmul.h"

#include <memory>
#include <utility>

#include "headway/headway_layer.h"
#include "ops/c_api/guarded.h"
#include "ops/c_api/handles.h"
#include "ops/c_api/structs.h"
#include "ops/c_api/views.h"

using namespace headway;         // NOLINT: functions of the C API are in no namespace
using namespace headway::c_api;  // NOLINT

struct headway_packed_matmul {
  PackedMatmul matmul;
};

namespace {

static_assert(static_cast<int>(Activation::kRelu) == HEADWAY_ACTIVATION_RELU);
static_assert(static_cast<int>(Activation::kSilu) == HEADWAY_ACTIVATION_SILU);
static_assert(static_cast<int>(Activation::kGelu) == HEADWAY_ACTIVATION_GELU);
static_assert(static_cast<int>(Activation::kGeluTanh) == HEADWAY_ACTIVATION_GELU_TANH);

PackedMatmul matmul_of(const headway_packed_matmul_spec& given) {
  require(given.activation >= HEADWAY_ACTIVATION_NONE && given.activation <= HEADWAY_ACTIVATION_GELU_TANH,
          "activation is ", given.activation, ", expected 0 to ", HEADWAY_ACTIVATION_GELU_TANH);
  return PackedMatmul({given.columns, given.depth, static_cast<Activation>(given.activation)},
                      {required_view(given.weight, "weight"), view(given.bias, "bias"), view(given.gate, "gate"),
                       view(given.gate_bias, "gate_bias")});
}

}  // namespace

void headway_packed_matmul_spec_init_sized(headway_packed_matmul_spec* spec, size_t struct_size) {
  init(spec, struct_size, headway_packed_matmul_spec{});
}

void headway_packed_matmul_args_init_sized(headway_packed_matmul_args* args, size_t struct_size) {
  init(args, struct_size, headway_packed_matmul_args{});
}

headway_status headway_packed_matmul_create(const headway_packed_matmul_spec* spec, headway_packed_matmul** matmul) {
  return guarded([&] {
    headway_packed_matmul*& result = required_result(matmul, "matmul");
    PackedMatmul made = matmul_of(read(spec, "spec", headway_packed_matmul_spec{}));
    give(std::make_unique<headway_packed_matmul>(headway_packed_matmul{std::move(made)}), &result);
  });
}

void headway_packed_matmul_destroy(headway_packed_matmul* matmul) { delete matmul; }

headway_status headway_packed_matmul_workspace_bytes(const headway_packed_matmul* matmul, int workers, size_t* bytes) {
  return guarded([&] {
    size_t& result = required_result(bytes, "bytes");
    require(workers >= 1, "workers is ", workers, ", expected at least 1");
    result = required(matmul, "matmul").matmul.workspace_bytes(workers);
  });
}

headway_status headway_packed_matmul_run(const headway_packed_matmul* matmul, const headway_packed_matmul_args* args,
                                         void* workspace, const headway_threads* threads) {
  return guarded([&] {
    const headway_packed_matmul_args given = read(args, "args", headway_packed_matmul_args{});
    PackedMatmulArgs tensors;
    tensors.x = required_view(given.x, "x");
    tensors.residual = view(given.residual, "residual");
    tensors.out = required_view(given.out, "out");
    required(matmul, "matmul").matmul.run(tensors, static_cast<std::byte*>(workspace), threads_of(threads));
  });
}

headway_status headway_packed_matmul_explain(const headway_packed_matmul* matmul, char* buffer, size_t capacity,
                                             size_t* needed) {
  return guarded([&] { copy_text(required(matmul, "matmul").matmul.explain(), buffer, capacity, needed); });
}
