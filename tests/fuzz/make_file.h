// Small files for the readers, right or nearly so: made by their structure, then now and then spoiled by bytes. Knows
// the formats, not the readers.
#pragma once

#include <map>
#include <string>

#include "tests/fuzz/dice.h"
#include "tests/fuzz/drive_file.h"

namespace headway::fuzz {

struct MadeFile {
  std::string bytes;
  bool right = false;  ///< a reader must take it
  /// Of a right file: what each tensor must read as, its bytes by its name ("" where the format has none).
  std::map<std::string, std::string> tensors;
};

/// A third is right. Else one to three things are wrong: offsets, types, shapes whose products overflow, keys twice or
/// unknown, bytes too many or too few, lengths, quotes, spaces, versions; of a quarter of those also the bytes.
MadeFile make_file(FileKind kind, Dice* dice);

}  // namespace headway::fuzz
