// See drive_model.h.
#include "tests/fuzz/drive_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <vector>

#include "headway/fusion.h"
#include "headway/onnx.h"
#include "headway/register_ops.h"
#include "headway/session.h"
#include "tests/fuzz/dice.h"
#include "tests/fuzz/message_rule.h"
#include "tests/fuzz/model_builder.h"
#include "tests/fuzz/weights.h"
#include "tools/conformance/compare_values.h"

namespace headway::fuzz {
namespace {

constexpr std::int64_t kMaxElements = 1 << 14;  // of all inputs
constexpr std::size_t kMemoryLimit = std::size_t{1} << 30;

const Registry& registry() {
  static const Registry* const all = [] {
    auto* made = new Registry;
    register_ops(made);
    return made;
  }();
  return *all;
}

/// What came of one way: an Error or tensors.
struct Outcome {
  std::optional<std::vector<Tensor>> outputs;
  std::string refusal;
  bool needs_memory = false;  ///< why it is refused
  std::string finding;
};

template <class Work>
Outcome guarded(const Work& work) {
  Outcome outcome;
  try {
    outcome.outputs = work();
  } catch (const Error& error) {
    outcome.refusal = error.what();
    outcome.needs_memory = error.code() == ErrorCode::kOutOfMemory;
    outcome.finding = broken_message_rule(error);
  } catch (const std::exception& other) {
    outcome.finding = std::string("exception that is no Error: ") + other.what();
  }
  return outcome;
}

/// Dims for every input: named ones from "n5", which generated models write, else 2; false when they are too large.
bool input_dims(const Graph& graph, std::vector<Dims>* all) {
  std::int64_t total = 0;
  for (const GraphInput& input : graph.inputs()) {
    Dims dims;
    std::int64_t count = 1;
    for (const SymbolicDim& dim : input.dims) {
      std::int64_t size = 2;
      if (const auto* number = std::get_if<std::int64_t>(&dim)) {
        size = *number;
      } else {
        const auto& name = std::get<std::string>(dim);
        const bool generated = name.size() >= 2 && name.size() <= 4 && name[0] == 'n' &&
                               name.find_first_not_of("0123456789", 1) == std::string::npos;
        if (generated) size = std::stoll(name.substr(1));
      }
      if (size < 0 || size > kMaxElements) return false;
      dims.push_back(size);
      count *= size;
      if (count > kMaxElements) return false;
    }
    total += count;
    all->push_back(dims);
  }
  return total <= kMaxElements;
}

template <class T>
void fill_small(Dice* dice, Tensor* tensor) {
  T* data = tensor->data<T>();
  for (std::int64_t i = 0; i < tensor->count(); ++i) data[i] = static_cast<T>(dice->between(0, 3));
}

/// The same numbers for the same seed, those of f32 apart by a rounding or two where `nudge` is not 0.
std::vector<Tensor> random_inputs(const Graph& graph, const std::vector<Dims>& dims, std::uint64_t seed,
                                  std::uint64_t nudge) {
  Dice dice(seed);
  Dice nudges(nudge);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    Tensor tensor(graph.inputs()[i].type, dims[i]);
    if (tensor.count() > 0) std::memset(tensor.view().data, 0, tensor_bytes(tensor.type(), tensor.dims()));
    switch (tensor.type()) {
      case DataType::kF32:
        for (std::int64_t k = 0; k < tensor.count(); ++k) {
          const float number = dice.unit();
          tensor.data<float>()[k] = nudge == 0 ? number : number * (1 + nudges.unit() * 0x1p-22f);
        }
        break;
      case DataType::kI64:
        fill_small<std::int64_t>(&dice, &tensor);
        break;
      case DataType::kI32:
        fill_small<std::int32_t>(&dice, &tensor);
        break;
      default:
        break;
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

/// The largest relative rounding of a type that the graph has: a pattern rounds to it once where nodes do at every
/// step.
double rounding_of(const Graph& graph) {
  double largest = 0;
  const auto look = [&](std::optional<DataType> type) {
    if (type == DataType::kF16) largest = std::max(largest, 0x1p-11);
    if (type == DataType::kBF16) largest = std::max(largest, 0x1p-8);
  };
  for (const GraphInput& input : graph.inputs()) look(input.type);
  for (ValueId value = 0; value < graph.num_values(); ++value) {
    if (const Tensor* constant = graph.constant(value)) look(constant->type());
  }
  for (const Node& node : graph.nodes()) {
    if (node.op != "Cast") continue;
    for (const auto& [name, attribute] : node.attributes.values()) {
      const auto* to = std::get_if<std::int64_t>(&attribute);
      if (to != nullptr && *to == kF16) look(DataType::kF16);
      if (to != nullptr && *to == kBF16) look(DataType::kBF16);
    }
  }
  return largest;
}

struct RunCase {
  const std::string& bytes;
  std::uint64_t seed;
  bool fused = false;
  std::uint64_t nudge = 0;
};

Outcome run(const RunCase& one, std::int64_t* groups, double* rounding) {
  const std::string& bytes = one.bytes;
  return guarded([&] {
    OnnxModel model = parse_onnx(std::as_bytes(std::span(bytes.data(), bytes.size())));
    std::vector<Dims> dims;
    const bool small = input_dims(model.graph, &dims);
    if (!one.fused) *rounding = rounding_of(model.graph);
    FusionReport report;
    if (one.fused) model.graph = fuse(model.graph, registry(), &report);
    *groups = static_cast<std::int64_t>(report.fused.size());
    const Session session(std::move(model.graph), registry(), {.memory_limit_bytes = kMemoryLimit});
    std::vector<Tensor> outputs;
    if (!small) return outputs;
    const std::vector<Tensor> inputs = random_inputs(session.graph(), dims, one.seed, one.nudge);
    std::vector<TensorInfo> infos;
    std::vector<ConstTensorView> views;
    for (const Tensor& input : inputs) {
      views.push_back(input.view());
      infos.push_back({input.type(), input.dims(), true});
    }
    session.explain(infos, 1);
    return session.run(views, Threads::serial());
  });
}

/// Largest |value| that is finite, of both: the scale that differences are held against.
double scale_of(const std::vector<double>& a, const std::vector<double>& b) {
  double scale = 1e-3;
  for (const auto* list : {&a, &b}) {
    for (const double value : *list) {
      if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
    }
  }
  return scale;
}

/// How far each element of each output moves when inputs and weights of the graph as it is move by a rounding.
using Movements = std::vector<std::vector<double>>;
Movements movements_of(const std::string& bytes, std::uint64_t seed, const std::vector<Tensor>& plain) {
  Movements movements;
  for (const Tensor& output : plain) movements.emplace_back(static_cast<std::size_t>(output.count()));
  for (std::uint64_t nudge = 1; nudge <= 3; ++nudge) {
    std::int64_t groups = 0;
    double rounding = 0;
    const std::string file = nudged(bytes, nudge);
    const Outcome moved = run({file, seed, false, nudge}, &groups, &rounding);
    if (!moved.outputs) continue;
    for (std::size_t o = 0; o < plain.size(); ++o) {
      if ((*moved.outputs)[o].dims() != plain[o].dims()) continue;
      const std::vector<double> a = tools::values_of(plain[o].view());
      const std::vector<double> b = tools::values_of((*moved.outputs)[o].view());
      for (std::size_t i = 0; i < a.size(); ++i) movements[o][i] = std::max(movements[o][i], std::abs(a[i] - b[i]));
    }
  }
  return movements;
}

/// Empty when the outputs agree. Fusion may compute through what overflows between the nodes of a pattern (GELU of an
/// infinity), so a finite number may stand for one that is not, but never the other way round. `rounding` is that of
/// the narrowest type on the way; `movements` are empty or those of the output.
std::string difference(const Tensor& unfused, const Tensor& fused, std::size_t output, double rounding,
                       const std::vector<double>& movements) {
  constexpr double kMovements = 64;  // a graph of some 20 layers rounds that often
  std::ostringstream text;
  text << "output " << output << ": ";
  if (unfused.type() != fused.type() || unfused.dims() != fused.dims()) {
    text << type_name(unfused.type()) << ' ' << unfused.dims() << " unfused, " << type_name(fused.type()) << ' '
         << fused.dims() << " fused";
    return text.str();
  }
  const std::vector<double> a = tools::values_of(unfused.view());
  const std::vector<double> b = tools::values_of(fused.view());
  const double scale = scale_of(a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double bound = std::max(1e-3, 8 * rounding) * scale + (movements.empty() ? 0 : kMovements * movements[i]);
    const bool both = std::isfinite(a[i]) && std::isfinite(b[i]);
    const bool as_good = std::isfinite(b[i]) || (std::isnan(a[i]) ? std::isnan(b[i]) : a[i] == b[i]);
    if (both ? std::abs(a[i] - b[i]) <= bound : as_good && !std::isfinite(a[i])) continue;
    text << "element " << i << " is " << a[i] << " unfused, " << b[i] << " fused, largest " << scale;
    return text.str();
  }
  return {};
}

std::string first_difference(const std::vector<Tensor>& plain, const std::vector<Tensor>& fused, double rounding,
                             const Movements& movements) {
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const std::string found =
        difference(plain[i], fused[i], i, rounding, movements.empty() ? std::vector<double>() : movements[i]);
    if (!found.empty()) return found;
  }
  return {};
}

/// A refusal without what else the session has in memory, which fusion changes.
std::string without_use(const std::string& refusal) {
  const std::size_t begin = refusal.find(", beside ");
  const std::size_t end = refusal.find(" bytes in use");
  return begin == std::string::npos || end < begin ? refusal : refusal.substr(0, begin) + refusal.substr(end);
}

}  // namespace

DriveResult drive_model(const std::string& bytes, std::uint64_t seed) {
  DriveResult result;
  std::int64_t none = 0;
  double rounding = 0;
  const Outcome plain = run({bytes, seed, false}, &none, &rounding);
  const Outcome fused = run({bytes, seed, true}, &result.fused, &rounding);
  result.ran = plain.outputs.has_value();
  result.refusal = plain.refusal;
  result.finding = !plain.finding.empty()   ? "unfused: " + plain.finding
                   : !fused.finding.empty() ? "fused: " + fused.finding
                                            : std::string();
  if (!result.finding.empty()) return result;
  // Fused, a graph may do without a tensor that is too large.
  if (plain.needs_memory && fused.outputs) return result;
  if (without_use(plain.refusal) != without_use(fused.refusal)) {
    result.finding = "unfused: " + (plain.refusal.empty() ? "ran" : plain.refusal) +
                     "; fused: " + (fused.refusal.empty() ? "ran" : fused.refusal);
    return result;
  }
  if (!plain.outputs) return result;
  if (plain.outputs->size() != fused.outputs->size()) {
    result.finding = "numbers of outputs differ";
    return result;
  }
  result.finding = first_difference(*plain.outputs, *fused.outputs, rounding, {});
  if (result.finding.empty() || holds_huge_weights(bytes)) {
    result.finding.clear();
    return result;
  }
  // Graphs at random are ill-conditioned now and then: scores in the thousands, differences of nearly equal numbers.
  const Movements movements = movements_of(bytes, seed, *plain.outputs);
  result.finding = first_difference(*plain.outputs, *fused.outputs, rounding, movements);
  return result;
}

}  // namespace headway::fuzz
