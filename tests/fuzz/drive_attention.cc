// See drive_attention.h.
#include "tests/fuzz/drive_attention.h"

#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "headway/error.h"
#include "ops/reference/reference_attention.h"
#include "tests/support/paths.h"
#include "tests/support/random_attention.h"

namespace headway::fuzz {
namespace {

using testing::AttentionCase;
using testing::CaseShape;
using testing::Expected;
using testing::Layout;
using testing::Path;
using testing::Random;
using testing::Strided;

constexpr std::int64_t kMaxCost = 60'000;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A mask's elements in other memory: dims of size 1 repeated by a stride of 0, or all apart by gaps of garbage.
class StridedMask {
 public:
  ConstTensorView made_of(const ConstTensorView& mask, const Dims& whole, Random* random) {
    if (mask.data == nullptr || random->chance(0.5)) return mask;
    ConstTensorView view = random->chance(0.5) ? mask : spread(mask);
    if (random->chance(0.5)) repeat(whole, &view);
    return view;
  }

 private:
  /// Twice the distance along every dim, the gaps holding what hides nothing and everything by turns.
  ConstTensorView spread(const ConstTensorView& mask) {
    const std::size_t element = size_bytes(mask.type);
    const auto count = static_cast<std::size_t>(mask.count());
    memory_.assign(2 * count * element + element, std::byte{1});
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(memory_.data() + 2 * i * element, mask.data + i * element, element);
    }
    ConstTensorView view = mask;
    view.data = memory_.data();
    for (int i = 0; i < view.strides.rank(); ++i) view.strides[i] *= 2;
    return view;
  }
  static void repeat(const Dims& whole, ConstTensorView* view) {
    for (int i = 1; i <= view->dims.rank() && i <= whole.rank(); ++i) {
      const int at = view->dims.rank() - i;
      if (view->dims[at] != 1 || whole[whole.rank() - i] == 0) continue;
      view->dims[at] = whole[whole.rank() - i];
      view->strides[at] = 0;
    }
  }

  std::vector<std::byte> memory_;
};

/// The same elements in another layout.
void lay(Layout layout, Strided* tensor) {
  const TensorView from = tensor->view();
  Strided to(from.dims, layout, from.type);
  testing::each(from.dims, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    to.at(b, h, i, j) = static_cast<float>(tensor->at(b, h, i, j));
  });
  *tensor = std::move(to);
}

void scale_by(float factor, Strided* tensor) {
  testing::each(tensor->view().dims, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    tensor->at(b, h, i, j) = factor * tensor->at(b, h, i, j);
  });
}

/// Poison in the keys and values that no query of their batch and head group sees.
void poison_hidden_keys(float poison, AttentionCase* problem) {
  const AttentionSpec& spec = problem->spec();
  const AttentionArgs args = problem->args();
  const std::int64_t group = *spec.num_kv_heads > 0 ? spec.num_heads / *spec.num_kv_heads : 0;
  for (std::int64_t b = 0; b < spec.batch; ++b) {
    for (std::int64_t kv = 0; kv < *spec.num_kv_heads; ++kv) {
      for (std::int64_t j = 0; j < spec.key_len; ++j) {
        bool hidden = true;
        for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
          for (std::int64_t i = 0; i < spec.query_len && hidden; ++i) {
            hidden = reference_bias(spec, args, {b, h, i, j}) == -kInfinity;
          }
        }
        if (!hidden) continue;
        for (std::int64_t d = 0; d < spec.head_dim; ++d) problem->key.at(b, kv, j, d) = poison;
        for (std::int64_t d = 0; d < *spec.value_head_dim; ++d) problem->value.at(b, kv, j, d) = poison;
      }
    }
  }
}

void poison_one(float poison, Random* random, Strided* tensor) {
  const Dims dims = tensor->view().dims;
  if (element_count(dims) == 0) return;
  tensor->at(random->below(dims[0]), random->below(dims[1]), random->below(dims[2]), random->below(dims[3])) = poison;
}

/// What one path left, to be held against what it leaves on two threads.
std::vector<float> elements(const Strided& tensor) {
  std::vector<float> all;
  const ConstTensorView view = tensor.view();
  if (view.data == nullptr) return all;
  if (view.dims.rank() != 4) {  // contiguous
    for (std::int64_t i = 0; i < view.count(); ++i) all.push_back(testing::read_element(view, i));
    return all;
  }
  testing::each(view.dims, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    all.push_back(testing::read_element(view, testing::offset_of(view.strides, b, h, i, j)));
  });
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// One problem and the views that the paths get.
class Driven {
 public:
  explicit Driven(std::uint64_t number) : random_(number ^ 0x61747465), problem_(shape_of(number, &random_)) {
    if (random_.chance(0.3)) lay(random_layout(), &problem_.key);
    if (random_.chance(0.3)) lay(random_layout(), &problem_.value);
    if (random_.chance(0.15)) scale_by(random_.pick({8.0f, 30.0f, 1e-3f}), &problem_.query);
    if (random_.chance(0.1)) scale_by(random_.pick({1e4f, 1e-10f}), &problem_.value);
    const float poison = random_.pick({std::nanf(""), kInfinity, -kInfinity});
    if (random_.chance(0.1)) {
      kind_ = "visible poison";
      // An infinite value times a probability that is 0 in f32 and not in double is no number in the one only.
      poison_one(poison, &random_, random_.pick({&problem_.query, &problem_.key}));
      if (random_.chance(0.5)) poison_one(std::nanf(""), &random_, &problem_.value);
    }
    expected_ = std::make_unique<Expected>(problem_.spec(), problem_.args());
    // The scores that are asked for of hidden keys are those of the poison.
    if (kind_ == "plain" && problem_.spec().scores_output == ScoresOutput::kNone && random_.chance(0.4)) {
      kind_ = "hidden poison";
      poison_hidden_keys(poison, &problem_);
    }
    args_ = problem_.args();
    const AttentionSpec& spec = problem_.spec();
    args_.mask = mask_.made_of(args_.mask, {spec.batch, spec.num_heads, spec.query_len, spec.key_len}, &random_);
    args_.key_mask = key_mask_.made_of(args_.key_mask, args_.key_mask.dims, &random_);
  }

  const std::string& kind() const { return kind_; }
  const AttentionCase& problem() const { return problem_; }

  /// The finding of one path; empty: none, or it does not take the problem.
  std::string drive(const Path& path, const Threads& threads) {
    const AttentionSpec& spec = problem_.spec();
    if (path.type != spec.type || !testing::refusal(path, spec).empty()) return "";
    const testing::SimdCap cap(path.simd);
    const Attention attention(spec, {path.implementation});
    run(attention, Threads::serial());
    if (problem_.out.gaps_written()) return "wrote beside the output";
    if (problem_.scores.gaps_written()) return "wrote beside the scores";
    const testing::Comparison comparison = expected_->compare(args_, testing::rounds_weights(path));
    if (!comparison.ok()) return comparison.failure;
    const std::vector<float> out = elements(problem_.out), scores = elements(problem_.scores);
    run(attention, threads);
    if (!same_bits(out, elements(problem_.out))) return "other output on two threads than on one";
    if (!same_bits(scores, elements(problem_.scores))) return "other scores on two threads than on one";
    return "";
  }

 private:
  static CaseShape shape_of(std::uint64_t number, Random* random) {
    CaseShape shape = testing::random_shape(number, kMaxCost);
    if (random->chance(0.05)) shape.hidden = 1;  // no row sees a key by its mask
    return shape;
  }
  Layout random_layout() {
    return testing::kAllLayouts[random_.below(static_cast<std::int64_t>(std::size(testing::kAllLayouts)))];
  }

  void run(const Attention& attention, const Threads& threads) {
    problem_.poison_outputs();
    const AlignedBuffer workspace(attention.workspace_bytes(threads.workers()));
    // All ones is a NaN: scratch that is read before it is written shows.
    if (workspace.size_bytes() > 0) std::memset(workspace.data(), 0xff, workspace.size_bytes());
    attention.run(args_, workspace.data(), threads);
  }

  Random random_;
  AttentionCase problem_;
  std::unique_ptr<Expected> expected_;
  std::string kind_ = "plain";
  StridedMask mask_, key_mask_;
  AttentionArgs args_;
};

}  // namespace

AttentionFinding drive_attention(std::uint64_t number) {
  static const std::vector<Path> paths = testing::all_paths();
  static const Threads threads = Threads::pool(2);
  Driven driven(number);
  std::ostringstream text;
  std::string others;
  for (const Path& path : paths) {
    std::string finding;
    try {
      finding = driven.drive(path, threads);
    } catch (const std::exception& error) {
      finding = std::string("refused: ") + error.what();
    }
    if (finding.empty()) continue;
    if (text.view().empty()) {
      text << path << ", " << driven.kind() << ": " << finding;
    } else {
      others += (others.empty() ? "; also " : ", ") + testing::name(path);
    }
  }
  if (text.view().empty()) return {driven.kind(), ""};
  text << others << " [" << describe(driven.problem().shape()) << "]";
  return {driven.kind(), text.str()};
}

}  // namespace headway::fuzz
