// What the page is given of one attention: as numbers in JSON, and as arrays. Two encodings, the smaller of which is
// taken: the probabilities in f32, or query and key in fixed point of 24 bits a row with the log-sum-exp, from which
// the page computes the rows and maps that it shows. Either way a row is exact to 1e-6.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "headway/threads.h"
#include "tools/heads/measures.h"
#include "tools/heads/source.h"

namespace headway::tools {

/// Arrays that several layers and heads share, each once.
class SharedArrays {
 public:
  /// Number of the array with these bytes.
  std::size_t add(const std::string& bytes);
  const std::vector<std::string>& arrays() const { return arrays_; }

 private:
  std::map<std::string, std::size_t> known_;
  std::vector<std::string> arrays_;
};

/// One attention: JSON with {"name", "op", "self", "queries", "keys", "heads", …}, and the bytes that its "parts" are
/// of.
struct LayerData {
  std::string json;
  std::string bytes;
  std::string thumbnails;  ///< [heads, cells down, cells across], a byte each
};

/// Cells of a head's thumbnail along an axis of `length`.
std::int64_t thumbnail_cells(std::int64_t length);

LayerData layer_data(const ShownAttention& shown, std::int64_t batch, const std::vector<HeadMeasures>& heads,
                     SharedArrays* biases, const Threads& threads);

}  // namespace headway::tools
