// What a reader makes of a file's bytes: read whole, or refused with an Error. Decides what counts as a finding.
#pragma once

#include <map>
#include <string>

namespace headway::fuzz {

enum class FileKind { kSafetensors, kNpy, kOnnxTensor };

/// By the ending of its name: .safetensors, .npy, .pb; anything else counts as .pb.
FileKind kind_of(const std::string& path);

/// Reads every tensor to its last byte. `refused` tells whether an Error was thrown. Returns the finding, empty when
/// there is none: another exception, an Error of kInternal, a message that is not one line of at most 300 characters.
/// `right`: what a file that is right must be read as, its tensors' bytes by name; null: nothing is known of it.
std::string drive_file(FileKind kind, const std::string& bytes, bool* refused,
                       const std::map<std::string, std::string>* right = nullptr);

}  // namespace headway::fuzz
