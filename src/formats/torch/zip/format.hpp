#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

/// The parts of a zip archive, as its specification (APPNOTE.TXT) lays them out: little-endian numbers without gaps.
namespace hortator::formats::zip {

constexpr std::uint32_t local_header = 0x04034b50;
constexpr std::uint32_t directory_entry = 0x02014b50;
constexpr std::uint32_t directory_end = 0x06054b50;
constexpr std::uint32_t directory_end_64 = 0x06064b50;
constexpr std::uint32_t directory_locator_64 = 0x07064b50;

constexpr std::size_t local_header_bytes = 30;  ///< without name and extra fields, as the next
constexpr std::size_t directory_entry_bytes = 46;
constexpr std::size_t directory_end_bytes = 22;  ///< without its comment
constexpr std::size_t directory_end_64_bytes = 56;
constexpr std::size_t directory_locator_64_bytes = 20;

constexpr std::uint16_t sizes_of_64_bits = 1;     ///< the extra field that has them
constexpr std::uint16_t padding = 0x4246;         ///< the extra field that PyTorch aligns data with
constexpr std::uint32_t in_64_bits = 0xffffffff;  ///< stands where a number of 32 bits is too small
constexpr std::uint16_t version_with_64_bits = 45;

/// Takes numbers from the front of bytes. Whoever takes has seen to it that there are enough.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  std::size_t left() const { return rest_.size(); }
  std::string_view bytes(std::size_t count) {
    const auto front = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return front;
  }
  std::uint16_t u16() { return take<std::uint16_t>(); }
  std::uint32_t u32() { return take<std::uint32_t>(); }
  std::uint64_t u64() { return take<std::uint64_t>(); }
  void skip(std::size_t count) { rest_.remove_prefix(count); }

 private:
  template <typename Number>
  Number take() {
    Number number = 0;
    std::memcpy(&number, bytes(sizeof number).data(), sizeof number);
    return number;
  }

  std::string_view rest_;
};

/// Puts numbers one after the other.
class Builder {
 public:
  Builder& u16(std::uint16_t number) { return put(number); }
  Builder& u32(std::uint32_t number) { return put(number); }
  Builder& u64(std::uint64_t number) { return put(number); }
  Builder& bytes(std::string_view more) {
    bytes_ += more;
    return *this;
  }
  const std::string& built() const { return bytes_; }

 private:
  template <typename Number>
  Builder& put(Number number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }

  std::string bytes_;
};

}  // namespace hortator::formats::zip
