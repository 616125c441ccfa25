// The run itself. Operators get contiguous tensors only, so that a plan may count on the strides it was made for:
// strided tensors of the caller go through staging, contiguous ones are used where they lie. An output bound over the
// input that it extends is used where it lies too.
#include "runtime/exec/execute.h"

#include <algorithm>

#include "runtime/exec/running_node.h"

namespace headway {
namespace {

/// Makes the buffer fit when it does not; the charge pays for what it grows by.
void grow(const char* what, std::size_t bytes, AlignedBuffer* buffer, MemoryCharge* charge) {
  if (buffer->size_bytes() >= bytes) return;
  charge->add(what, bytes - buffer->size_bytes());
  *buffer = AlignedBuffer();  // freed first: never both at one time
  *buffer = AlignedBuffer(bytes);
}

/// A contiguous view of the buffer.
TensorView stage(AlignedBuffer* buffer, DataType type, const Dims& dims, MemoryCharge* charge) {
  grow("a contiguous copy of a tensor of the caller", tensor_bytes(type, dims), buffer, charge);
  return {buffer->data(), type, dims};
}

/// Whether an output lies over this input.
bool is_extended(std::size_t input, const ShapePlan& plan, const RunArgs& args) {
  const std::vector<ExtendedInput>& extended = plan.extended_inputs();
  for (std::size_t i = 0; i < extended.size(); ++i) {
    if (extended[i].input != static_cast<int>(input)) continue;
    if (is_bound_in_place(extended[i], args.inputs, args.outputs[i])) return true;
  }
  return false;
}

void bind_inputs(const Graph& graph, const ShapePlan& plan, const RunArgs& args, RunState* state) {
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const ConstTensorView& input = args.inputs[i];
    ConstTensorView& bound = state->values[graph.inputs()[i].value].readable;
    if (is_extended(i, plan, args)) {
      bound = input;
      continue;
    }
    if (input.is_contiguous()) {
      bound = {input.data, input.type, input.dims};  // unit axes get normal strides
      continue;
    }
    const TensorView staged = stage(&state->input_staging[i], input.type, input.dims, &state->charge);
    copy_elements(input, staged);
    bound = staged;
  }
}

void bind_outputs(const Graph& graph, const ShapePlan& plan, const RunArgs& args, RunState* state) {
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    if (!plan.output_is_written(i)) continue;
    const TensorView& output = args.outputs[i];
    ValueViews& bound = state->values[graph.outputs()[i].value];
    if (is_bound_in_place(plan.extended_inputs()[i], args.inputs, output)) {
      bound = output;
      continue;
    }
    bound = output.is_contiguous() ? TensorView(output.data, output.type, output.dims)
                                   : stage(&state->output_staging[i], output.type, output.dims, &state->charge);
  }
}

/// The output's dims over the memory of the input it shows, which for an input of the graph changes from run to run.
void bind_view(const Node& node, const Step& step, const ShapePlan& plan, RunState* state) {
  const TensorInfo& info = plan.info(node.outputs[0]);
  const ConstTensorView& shown = state->values[node.inputs[step.aliased_input]].readable;
  state->values[node.outputs[0]].readable = {shown.data, info.type, info.dims};
}

void run_step(const Graph& graph, const Step& step, const RunArgs& args, RunState* state) {
  const Node& node = graph.nodes()[step.node];
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    state->node_inputs[i] = node.inputs[i] == kNoValue ? ConstTensorView() : state->values[node.inputs[i]].readable;
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    state->node_outputs[i] = state->values[node.outputs[i]].writable;
  }
  const ProfileScope scope(args.profiler, 0, args.zones[step.node]);
  const RunningNode running(node);
  const RunContext context{args.threads, state->workspace.data(), args.profiler, args.host};
  name_errors(node, [&] {
    step.plan->run(context, {state->node_inputs.data(), node.inputs.size()},
                   {state->node_outputs.data(), node.outputs.size()});
  });
}

}  // namespace

RunLease::RunLease(std::shared_ptr<const ShapePlan> plan, int workers)
    : plan_(std::move(plan)), state_(plan_->pool().take(workers)) {
  if (!state_) {
    state_ = plan_->make_state();
    plan_->pool().announce_new();
  }
  if (state_->workers == workers) return;
  try {
    grow("the workspace of a run", plan_->workspace_bytes(workers), &state_->workspace, &state_->charge);
  } catch (...) {
    state_->workers = 0;
    plan_->pool().give_back(std::move(state_));
    throw;
  }
  state_->workers = workers;
}

RunLease::~RunLease() { plan_->pool().give_back(std::move(state_)); }

void execute(const Graph& graph, RunLease* lease, const RunArgs& args) {
  RunState& state = lease->state();
  bind_inputs(graph, lease->plan(), args, &state);
  bind_outputs(graph, lease->plan(), args, &state);
  for (const Step& step : lease->plan().steps()) {
    if (step.empty) continue;
    if (step.plan) {
      run_step(graph, step, args, &state);
    } else {
      bind_view(graph.nodes()[step.node], step, lease->plan(), &state);
    }
  }
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    const ConstTensorView& value = state.values[graph.outputs()[i].value].readable;
    if (value.data != args.outputs[i].data) copy_elements(value, args.outputs[i]);
  }
}

}  // namespace headway
