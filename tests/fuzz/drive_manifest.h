// Folders of cases as `headway conformance` reads them, loaded and run. Decides what counts as a finding.
#pragma once

#include <string>

#include "tests/fuzz/dice.h"

namespace headway::fuzz {

/// The folders that the cases are written to: one for each kind of manifest, with small tensors and a small model. Made
/// before the first case, removed at the end; a case leaves nothing that the next one could see.
class ManifestFolders {
 public:
  ManifestFolders();
  ~ManifestFolders();
  ManifestFolders(const ManifestFolders&) = delete;
  ManifestFolders& operator=(const ManifestFolders&) = delete;

  /// Writes one manifest, right or nearly so, loads its cases and runs them. `refused` tells whether an Error was
  /// thrown. Returns the finding: another exception, a message that is not one short line, or that a right one is
  /// refused or fails.
  std::string drive(Dice* dice, bool* refused);

 private:
  std::string folder_;
  bool written_ = false;  ///< the tensors, by this process
};

}  // namespace headway::fuzz
