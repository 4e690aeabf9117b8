#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace hortator::checkpoint {

template <typename T>
concept PlainValue = std::is_trivially_copyable_v<T>;

/// Appends a value as its bytes, for another rank of this job.
template <PlainValue T>
void put_plain(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Takes from the front of bytes that were packed so, and are whole.
class PackedBytes {
 public:
  explicit PackedBytes(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  std::string_view take_bytes(std::size_t count) {
    const auto front = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return front;
  }
  template <PlainValue T>
  T take_plain() {
    T value{};
    const auto bytes = take_bytes(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

 private:
  std::string_view rest_;
};

}  // namespace hortator::checkpoint
