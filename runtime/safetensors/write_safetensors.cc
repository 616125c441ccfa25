// Writing a safetensors file. Decides the order of the tensors; atomic_file.h decides how it reaches the disk.
#include <algorithm>
#include <span>

#include "headway/safetensors.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"
#include "runtime/base/json_text.h"
#include "runtime/safetensors/header.h"

namespace headway {
namespace {

using Named = std::pair<const std::string, ConstTensorView>;

// Wide types first, then by name: with the data section at a multiple of 8, every tensor is then aligned for its type.
std::vector<const Named*> in_file_order(const std::map<std::string, ConstTensorView>& tensors) {
  std::vector<const Named*> order;
  for (const Named& named : tensors) order.push_back(&named);
  std::stable_sort(order.begin(), order.end(), [](const Named* a, const Named* b) {
    return size_bytes(a->second.type) > size_bytes(b->second.type);
  });
  return order;
}

std::string header_text(const std::vector<const Named*>& order, const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  const auto separate = [&text] {
    if (text.size() > 1) text += ",";
  };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    const char* comma = "";
    for (const auto& [key, value] : metadata) {
      text += comma;
      append_json_string(key, &text);
      text += ":";
      append_json_string(value, &text);
      comma = ",";
    }
    text += "}";
  }
  std::int64_t at = 0;
  for (const Named* named : order) {
    const ConstTensorView& view = named->second;
    const std::int64_t end = at + view.count() * static_cast<std::int64_t>(size_bytes(view.type));
    separate();
    append_json_string(named->first, &text);
    text += std::string(":{\"dtype\":\"") + safetensors_type_name(view.type) + "\",\"shape\":[";
    for (int i = 0; i < view.rank(); ++i) text += (i > 0 ? "," : "") + std::to_string(view.dims[i]);
    text += "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(end) + "]}";
    at = end;
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::string& path, const std::map<std::string, ConstTensorView>& tensors,
                       const std::map<std::string, std::string>& metadata) try {
  require(tensors.count("__metadata__") == 0, "a tensor cannot be named __metadata__");
  const std::vector<const Named*> order = in_file_order(tensors);
  const std::string header = header_text(order, metadata);
  const std::uint64_t header_bytes = header.size();

  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&header_bytes, 1)));
  file.write(header);
  for (const Named* named : order) {
    const ConstTensorView& view = named->second;
    const std::int64_t count = view.count();
    if (count == 0) continue;
    const std::size_t bytes = static_cast<std::size_t>(count) * size_bytes(view.type);
    if (view.is_contiguous()) {
      file.write({view.data, bytes});
    } else {
      Tensor packed(view.type, view.dims);
      copy_elements(view, packed.view());
      file.write({packed.view().data, bytes});
    }
  }
  file.commit();
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace headway
