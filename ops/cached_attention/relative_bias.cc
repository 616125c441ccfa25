// T5's buckets of distances, once per model. In f32 as the models compute them, so that no distance falls into another
// bucket.
#include <algorithm>
#include <cmath>

#include "headway/cached_attention.h"
#include "ops/cached_attention/check_tensors.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_overlap.h"

namespace headway {
namespace {

/// Bucket of a key `distance` positions before the query; negative: after it.
std::int64_t bucket_of(std::int64_t distance, std::int64_t buckets, std::int64_t max_distance, bool bidirectional) {
  std::int64_t first = 0;
  if (bidirectional) {
    buckets /= 2;
    if (distance < 0) first = buckets;
    distance = std::abs(distance);
  }
  distance = std::max<std::int64_t>(distance, 0);
  const std::int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const float position = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                         static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const auto beyond = static_cast<std::int64_t>(position * static_cast<float>(buckets - exact));
  return first + std::min(exact + beyond, buckets - 1);
}

}  // namespace

void relative_bias_by_distance(const ConstTensorView& buckets, std::int64_t max_distance, bool bidirectional,
                               const TensorView& to) {
  require(buckets.present && buckets.rank() == 2, "buckets has rank ", buckets.rank(), ", expected 2");
  check_tensor("buckets", buckets, DataType::kF32, buckets.dims);
  const std::int64_t count = buckets.dims[0];
  const std::int64_t least = bidirectional ? 4 : 2;
  require(count >= least && count % least == 0, "buckets has ", count, " rows, expected a multiple of ", least);
  require(max_distance > count / least, "max_distance is ", max_distance, ", expected more than ", count / least);
  require(max_distance <= std::int64_t{1} << 24, "max_distance is ", max_distance, ", expected at most ", 1 << 24);
  const std::int64_t future = bidirectional ? max_distance : 0;
  check_tensor("to", to, DataType::kF32, {max_distance + 1 + future, buckets.dims[1]});
  check_apart("to", to, "buckets", buckets);
  check_no_self_overlap("to", to);
  for (std::int64_t r = 0; r < to.dims[0]; ++r) {
    const std::int64_t bucket = bucket_of(r - future, count, max_distance, bidirectional);
    for (std::int64_t h = 0; h < to.dims[1]; ++h) {
      to.as<float>()[r * to.strides[0] + h * to.strides[1]] =
          buckets.as<float>()[bucket * buckets.strides[0] + h * buckets.strides[1]];
    }
  }
}

}  // namespace headway
