#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <hortator/detail/parts.hpp>
#include <hortator/export.hpp>
#include <hortator/training/state_dict.hpp>
#include <string>
#include <string_view>
#include <type_traits>

namespace hortator {

/// Serialises objects for other ranks of the same run. Not a file format.
class HORTATOR_API ObjectWriter {
 public:
  void write_bytes(const void* data, std::size_t count) { bytes_.append(static_cast<const char*>(data), count); }
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void write_plain(const T& value) { write_bytes(&value, sizeof value); }
  void write_size(std::size_t size) { write_plain(static_cast<std::uint64_t>(size)); }
  void write_text(std::string_view text);
  void write_tensor(const at::Tensor& tensor);  ///< its values; they arrive on the CPU
  void write_state(const StateDict& state);

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads the bytes of an ObjectWriter in the same order. Throws if there are fewer bytes than requested.
class HORTATOR_API ObjectReader {
 public:
  explicit ObjectReader(std::string_view bytes) : remaining_(bytes) {}

  void read_bytes(void* data, std::size_t count);
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void read_plain(T& value) { read_bytes(&value, sizeof value); }
  std::size_t read_size();
  std::string read_text();
  at::Tensor read_tensor();
  StateDict read_state();
  bool at_end() const { return remaining_.empty(); }

 private:
  std::string_view remaining_;
};

/// Serialisation of types that you cannot change. A specialisation has `static void write(ObjectWriter&, const T&)` and
/// `static void read(ObjectReader&, T&)`.
template <typename T>
struct ObjectTraits;

}  // namespace hortator

#include <hortator/detail/codec.hpp>
