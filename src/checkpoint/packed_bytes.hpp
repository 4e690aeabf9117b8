#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// Values as bytes, for other ranks of the same job: in this machine's byte order, without type information.
namespace hortator::checkpoint {

template <typename T>
concept PlainValue = std::is_trivially_copyable_v<T>;

template <PlainValue T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <PlainValue T>
void put(std::string& bytes, const std::vector<T>& values) {
  put(bytes, static_cast<std::uint64_t>(values.size()));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

inline void put(std::string& bytes, const std::string& text) {
  put(bytes, static_cast<std::uint64_t>(text.size()));
  bytes += text;
}

/// Takes values from the front of bytes in the order in which put() appended them. The bytes are trusted to be
/// complete.
class PackedBytes {
 public:
  explicit PackedBytes(std::string_view bytes) : remaining_(bytes) {}

  bool is_empty() const { return remaining_.empty(); }

  template <PlainValue T>
  void take(T& value) {
    copy_front(&value, sizeof value);
  }
  template <PlainValue T>
  void take(std::vector<T>& values) {
    values.resize(static_cast<std::size_t>(take<std::uint64_t>()));
    if (!values.empty()) copy_front(values.data(), values.size() * sizeof(T));
  }
  void take(std::string& text) {
    text.resize(static_cast<std::size_t>(take<std::uint64_t>()));
    copy_front(text.data(), text.size());
  }
  template <typename T>
  T take() {
    T value{};
    take(value);
    return value;
  }

 private:
  void copy_front(void* to, std::size_t bytes) {
    bytes = remaining_.copy(static_cast<char*>(to), bytes);
    remaining_.remove_prefix(bytes);
  }

  std::string_view remaining_;
};

}  // namespace hortator::checkpoint
