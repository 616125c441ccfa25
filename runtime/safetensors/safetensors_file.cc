// A safetensors file opened for reading: map, parse, check, then hand out views.
#include <bit>
#include <cstring>
#include <optional>
#include <span>

#include "headway/safetensors.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/printable.h"
#include "runtime/safetensors/header.h"

namespace headway {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t kLengthBytes = 8;
// The format's own limit; without it a file could ask for gigabytes of parsing.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

// A bool that is neither 0 nor 1 is undefined behaviour to read as one.
void check_bools(const std::byte* data, std::int64_t count, const std::string& file, const std::string& tensor) {
  for (std::int64_t i = 0; i < count; ++i) {
    const int byte = std::to_integer<int>(data[i]);
    require(byte <= 1, printable(file), ": bool tensor \"", printable(tensor), "\" holds ", byte, " at element ", i,
            ", expected 0 or 1");
  }
}

SafetensorsHeader header_of(std::string_view text, std::int64_t data_bytes, const std::string& path) {
  try {
    return parse_safetensors_header(text, data_bytes, path);
  } catch (const Error& error) {
    throw Error(error.code(), one_line(error.what()));
  }
}

}  // namespace

struct SafetensorsFile::Impl {
  explicit Impl(const std::string& file_path) : path(file_path), file(file_path) {}

  std::string path;
  MappedFile file;
  std::map<std::string, std::string> metadata;
  std::map<std::string, ConstTensorView> tensors;  // absent views where `refusals` says why
  std::map<std::string, std::string> refusals;
  std::vector<AlignedBuffer> copies;  // of tensors that the file holds at an address unfit for their type
};

SafetensorsFile::SafetensorsFile(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

SafetensorsFile SafetensorsFile::open(const std::string& path) try {
  auto impl = std::make_shared<Impl>(path);
  const std::span<const std::byte> bytes = impl->file.bytes();
  require(bytes.size() >= kLengthBytes, printable(path), ": file has ", bytes.size(), " bytes, expected at least ",
          kLengthBytes);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  require(header_bytes <= kMaxHeaderBytes, printable(path), ": header length is ", header_bytes, " bytes, at most ",
          kMaxHeaderBytes, " is allowed");
  require(header_bytes <= bytes.size() - kLengthBytes, printable(path), ": header length is ", header_bytes,
          " bytes, the file has ", bytes.size() - kLengthBytes, " after the length");

  const std::byte* data = bytes.data() + kLengthBytes + header_bytes;
  const auto data_bytes = static_cast<std::int64_t>(bytes.size() - kLengthBytes - header_bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data() + kLengthBytes), header_bytes);
  SafetensorsHeader header = header_of(text, data_bytes, path);

  impl->metadata = std::move(header.metadata);
  for (const SafetensorsEntry& entry : header.entries) {
    if (!entry.refusal.empty()) {
      impl->tensors.emplace(entry.name, ConstTensorView());
      impl->refusals.emplace(entry.name, entry.refusal);
      continue;
    }
    const std::byte* begin = data + entry.begin;
    const auto size = static_cast<std::size_t>(entry.end - entry.begin);
    if (entry.type == DataType::kBool) check_bools(begin, entry.end - entry.begin, path, entry.name);
    if (size > 0 && reinterpret_cast<std::uintptr_t>(begin) % size_bytes(entry.type) != 0) {
      AlignedBuffer copy(size);
      std::memcpy(copy.data(), begin, size);
      begin = copy.data();
      impl->copies.push_back(std::move(copy));
    }
    impl->tensors.emplace(entry.name, ConstTensorView(begin, entry.type, entry.dims));
  }
  return SafetensorsFile(std::move(impl));
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

std::vector<std::string> SafetensorsFile::names() const try {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : impl_->tensors) out.push_back(name);
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

bool SafetensorsFile::has(const std::string& name) const { return impl_->tensors.count(name) != 0; }

bool SafetensorsFile::can_show(const std::string& name) const { return has(name) && impl_->refusals.count(name) == 0; }

ConstTensorView SafetensorsFile::tensor(const std::string& name) const try {
  const auto found = impl_->tensors.find(name);
  if (found == impl_->tensors.end()) {  // not by require(), whose arguments would be made each time
    fail(ErrorCode::kInvalidArgument, printable(impl_->path), ": no tensor named \"", printable(name), "\" among ",
         impl_->tensors.size());
  }
  if (const auto refusal = impl_->refusals.find(name); refusal != impl_->refusals.end()) {
    fail(ErrorCode::kInvalidArgument, printable(impl_->path), ": tensor \"", printable(name), '"', refusal->second);
  }
  return found->second;
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

const std::map<std::string, std::string>& SafetensorsFile::metadata() const { return impl_->metadata; }

const std::string& SafetensorsFile::path() const { return impl_->path; }

}  // namespace headway
