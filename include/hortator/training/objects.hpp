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

/// Bytes of objects on their way to other ranks of the same run. They are no format of files.
class HORTATOR_API ObjectWriter {
 public:
  void write_bytes(const void* data, std::size_t count) { bytes_.append(static_cast<const char*>(data), count); }
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void write_plain(const T& value) { write_bytes(&value, sizeof value); }
  void write_size(std::size_t size) { write_plain(static_cast<std::uint64_t>(size)); }
  void write_text(std::string_view text);
  void write_tensor(const at::Tensor& tensor);  ///< its numbers: they arrive on the CPU
  void write_state(const StateDict& state);

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Gives them back in the same order. Throws when there are fewer than are asked for.
class HORTATOR_API ObjectReader {
 public:
  explicit ObjectReader(std::string_view bytes) : rest_(bytes) {}

  void read_bytes(void* data, std::size_t count);
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void read_plain(T& value) { read_bytes(&value, sizeof value); }
  std::size_t read_size();
  std::string read_text();
  at::Tensor read_tensor();
  StateDict read_state();
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

/// How objects of a type of somebody else's travel: a specialisation has `static void write(ObjectWriter&, const T&)`
/// and `static void read(ObjectReader&, T&)`.
template <typename T>
struct ObjectTraits;

}  // namespace hortator

#include <hortator/detail/codec.hpp>
