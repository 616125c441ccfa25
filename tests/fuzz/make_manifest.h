// The JSON of folders of cases, right or nearly so. Knows what the keys are called, not what the readers make of them.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/dice.h"

namespace headway::fuzz {

struct ManifestPlace {
  const char* folder;
  const char* file;  ///< of the JSON
};
/// One for each kind of manifest.
const std::vector<ManifestPlace>& manifest_places();

struct MadeManifest {
  ManifestPlace place;
  std::string text;
  bool right = false;  ///< its cases must load and pass
};

/// One in eight is right. Else values of other types and sizes, keys that are missing or of another layout, lists with
/// more entries; of a quarter of those also the bytes are spoiled.
MadeManifest make_manifest(Dice* dice);

}  // namespace headway::fuzz
