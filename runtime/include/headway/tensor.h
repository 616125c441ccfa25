// Element types, dimensions, strided views and the owning tensor. Views never own and never copy; a head of a packed
// projection, a transposed cache or a broadcast mask is a view with other strides. Knows nothing of operators.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <span>
#include <type_traits>

#include "headway/error.h"
#include "headway/export.h"

namespace headway {

enum class DataType : std::uint8_t { kF32, kF64, kF16, kBF16, kI8, kU8, kI32, kI64, kBool };

/// Bytes of one element.
HEADWAY_API std::size_t size_bytes(DataType type);
/// "f32", "bool", …: the names that messages and files use.
HEADWAY_API const char* type_name(DataType type);

/// bf16 as stored: the upper half of an f32. Arithmetic is done in f32.
struct BFloat16 {
  std::uint16_t bits;
};
/// IEEE binary16 as stored.
struct Float16 {
  std::uint16_t bits;
};

/// DataType of a C++ element type.
template <class T>
constexpr DataType data_type_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) return DataType::kF32;
  if constexpr (std::is_same_v<U, double>) return DataType::kF64;
  if constexpr (std::is_same_v<U, Float16>) return DataType::kF16;
  if constexpr (std::is_same_v<U, BFloat16>) return DataType::kBF16;
  if constexpr (std::is_same_v<U, std::int8_t>) return DataType::kI8;
  if constexpr (std::is_same_v<U, std::uint8_t>) return DataType::kU8;
  if constexpr (std::is_same_v<U, std::int32_t>) return DataType::kI32;
  if constexpr (std::is_same_v<U, std::int64_t>) return DataType::kI64;
  if constexpr (std::is_same_v<U, bool>) return DataType::kBool;
}

inline constexpr int kMaxRank = 8;

/// Up to kMaxRank sizes or strides, held inline so that views can be made without allocating.
class HEADWAY_API Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const std::int64_t> values) {
    detail::require(values.size() <= kMaxRank, "rank is ", values.size(), ", at most ", kMaxRank, " is supported");
    for (std::int64_t v : values) values_[rank_++] = v;
  }

  int rank() const { return rank_; }
  std::int64_t operator[](int i) const { return values_[i]; }
  std::int64_t& operator[](int i) { return values_[i]; }
  std::int64_t back() const { return values_[rank_ - 1]; }
  const std::int64_t* begin() const { return values_; }
  const std::int64_t* end() const { return values_ + rank_; }
  void push_back(std::int64_t value) {
    detail::require(rank_ < kMaxRank, "rank would be ", rank_ + 1, ", at most ", kMaxRank, " is supported");
    values_[rank_++] = value;
  }
  friend bool operator==(const Dims& a, const Dims& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  /// "[2, 12, 49, 32]"
  HEADWAY_API friend std::ostream& operator<<(std::ostream& out, const Dims& dims);

 private:
  std::int64_t values_[kMaxRank] = {};
  int rank_ = 0;
};

/// Product of the dims; throws kInvalidArgument on a negative dim or when the product does not fit 63 bits.
HEADWAY_API std::int64_t element_count(const Dims& dims);
/// Bytes of a contiguous tensor; throws kInvalidArgument when they do not fit 63 bits.
HEADWAY_API std::size_t tensor_bytes(DataType type, const Dims& dims);
/// Row-major strides, in elements.
HEADWAY_API Dims contiguous_strides(const Dims& dims);

/// A strided view: pointer, type, dims, strides in elements. `Byte` is std::byte or const std::byte. Views are small
/// values, allocate nothing, and a default-made one is "absent" (tests false).
template <class Byte>
struct HEADWAY_API BasicTensorView {
  Byte* data = nullptr;
  DataType type = DataType::kF32;
  Dims dims;
  Dims strides;
  bool present = false;

  BasicTensorView() = default;
  /// Contiguous view over `pointer`.
  BasicTensorView(Byte* pointer, DataType element_type, const Dims& d)
      : BasicTensorView(pointer, element_type, d, contiguous_strides(d)) {}
  BasicTensorView(Byte* pointer, DataType element_type, const Dims& d, const Dims& s)
      : data(pointer), type(element_type), dims(d), strides(s), present(true) {}
  /// A writable view converts to a read-only one.
  template <class Other,
            class = std::enable_if_t<std::is_same_v<Byte, const std::byte> && std::is_same_v<Other, std::byte>>>
  BasicTensorView(const BasicTensorView<Other>& other)
      : data(other.data), type(other.type), dims(other.dims), strides(other.strides), present(other.present) {}

  explicit operator bool() const { return present; }
  int rank() const { return dims.rank(); }
  std::int64_t count() const { return element_count(dims); }
  bool is_contiguous() const;

  /// Typed pointer to the first element; throws kInvalidArgument when `T` is not the view's type.
  template <class T>
  auto as() const {
    detail::require(type == data_type_of<T>(), "tensor is ", type_name(type), ", expected ",
                    type_name(data_type_of<T>()));
    using Pointer = std::conditional_t<std::is_const_v<Byte>, const T*, T*>;
    return reinterpret_cast<Pointer>(data);
  }

  /// Same elements with axis i of the result being axis `order[i]` of this view.
  BasicTensorView permuted(std::initializer_list<int> order) const;
  /// Elements [begin, end) of one axis.
  BasicTensorView sliced(int axis, std::int64_t begin, std::int64_t end) const;
  /// Element `index` of one axis, which disappears.
  BasicTensorView selected(int axis, std::int64_t index) const;
  /// Other dims over the same elements; needs a contiguous view.
  BasicTensorView reshaped(const Dims& new_dims) const;
  /// Splits one axis in two (`outer`, dims[axis] / outer): how E becomes H × D without a copy.
  BasicTensorView split_axis(int axis, std::int64_t outer) const;
  /// Right-aligned broadcast; broadcast axes get stride 0. Throws kInvalidArgument when the dims do not fit.
  BasicTensorView broadcast_to(const Dims& target) const;
};

using TensorView = BasicTensorView<std::byte>;
using ConstTensorView = BasicTensorView<const std::byte>;

/// A view of typed memory, strides in elements: `T` gives the element type, a const T a read-only view. Reads nothing.
/// Throws kInvalidArgument when there are not as many strides as dims.
template <class T>
auto view_of(T* data, const Dims& dims, const Dims& strides) {
  detail::require(strides.rank() == dims.rank(), "view has ", strides.rank(), " strides, expected ", dims.rank());
  if constexpr (std::is_const_v<T>) {
    return ConstTensorView(reinterpret_cast<const std::byte*>(data), data_type_of<T>(), dims, strides);
  } else {
    return TensorView(reinterpret_cast<std::byte*>(data), data_type_of<T>(), dims, strides);
  }
}
/// The same of contiguous memory.
template <class T>
auto view_of(T* data, const Dims& dims) {
  return view_of(data, dims, contiguous_strides(dims));
}

/// Copies element by element between views of the same dims and type; any strides. Allocates nothing. Throws
/// kInvalidArgument naming both dims or types when they differ.
HEADWAY_API void copy_elements(const ConstTensorView& from, const TensorView& to);

/// 64-byte aligned memory; huge pages are asked for from 2 MiB on. Move-only; not initialised.
class HEADWAY_API AlignedBuffer {
 public:
  AlignedBuffer() = default;
  /// Throws kOutOfMemory naming the bytes when they cannot be had. 0 bytes take none, and data() is null.
  explicit AlignedBuffer(std::size_t bytes);
  std::byte* data() const { return data_.get(); }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_bytes_ = 0;
};

/// Memory of somebody else that is never written: a stretch of a mapped file, at any alignment. Thread-safe.
class HEADWAY_API ExternalBuffer {
 public:
  virtual ~ExternalBuffer() = default;
  /// As they lie.
  virtual const std::byte* bytes() const = 0;
  /// Aligned to an element: where they lie, or a copy that all holders of the result share and the last one frees.
  virtual std::shared_ptr<const std::byte> aligned() const = 0;
  /// The same, for as long as this object lives.
  virtual const std::byte* aligned_view() const = 0;
  /// A hint that nobody reads them soon: memory that reading has filled may be let go.
  virtual void advise_unneeded() const = 0;
};

/// A contiguous tensor that owns its memory, or shares memory that is never written. Elements are not initialised.
/// Move-only.
class HEADWAY_API Tensor {
 public:
  Tensor() = default;
  /// Throws kInvalidArgument for dims that cannot be right, kOutOfMemory naming the bytes when they cannot be had.
  Tensor(DataType type, const Dims& dims);
  /// Shares `data`, tensor_bytes(type, dims) bytes aligned to an element (a mapped file): read-only, `view()` of a
  /// tensor that is not const throws.
  static Tensor shared(DataType type, const Dims& dims, std::shared_ptr<const std::byte> data);
  /// Shares `bytes`, tensor_bytes(type, dims) of them; read-only as above. `view()` may make an aligned copy, which
  /// stays.
  static Tensor foreign(DataType type, const Dims& dims, std::shared_ptr<const ExternalBuffer> bytes);

  DataType type() const { return type_; }
  const Dims& dims() const { return dims_; }
  std::int64_t count() const { return element_count(dims_); }
  bool is_shared() const { return shared_ != nullptr || foreign_ != nullptr; }
  /// Null unless made by foreign().
  const ExternalBuffer* foreign() const { return foreign_.get(); }
  TensorView view() {
    detail::require(!is_shared(), "tensor shares memory that is read-only");
    return {buffer_.data(), type_, dims_};
  }
  ConstTensorView view() const {
    const std::byte* bytes = foreign_ ? foreign_->aligned_view() : shared_ ? shared_.get() : buffer_.data();
    return {bytes, type_, dims_};
  }
  template <class T>
  T* data() {
    return view().template as<T>();
  }
  template <class T>
  const T* data() const {
    return view().template as<T>();
  }

 private:
  AlignedBuffer buffer_;
  std::shared_ptr<const std::byte> shared_;
  std::shared_ptr<const ExternalBuffer> foreign_;
  DataType type_ = DataType::kF32;
  Dims dims_;
};

}  // namespace headway
