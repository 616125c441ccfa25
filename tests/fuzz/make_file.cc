// See make_file.h.
#include "tests/fuzz/make_file.h"

#include "tests/fuzz/make_file_parts.h"
#include "tests/fuzz/spoil.h"

namespace headway::fuzz {

MadeFile make_file(FileKind kind, Dice* dice) {
  MadeFile made = kind == FileKind::kSafetensors ? make_safetensors(dice)
                  : kind == FileKind::kNpy       ? make_npy(dice)
                                                 : make_onnx_tensor(dice);
  if (!made.right && dice->one_in(4)) spoil_bytes(dice, &made.bytes, kLittleMore);
  return made;
}

}  // namespace headway::fuzz
