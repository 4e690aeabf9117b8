#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

/// The structures of a zip archive, by its specification (APPNOTE.TXT): little-endian numbers without padding.
namespace hortator::formats::zip {

constexpr std::uint32_t local_header = 0x04034b50;
constexpr std::uint32_t directory_entry = 0x02014b50;
constexpr std::uint32_t directory_end = 0x06054b50;
constexpr std::uint32_t directory_end_64 = 0x06064b50;
constexpr std::uint32_t directory_locator_64 = 0x07064b50;

constexpr std::size_t local_header_bytes = 30;     ///< without name and extra fields
constexpr std::size_t directory_entry_bytes = 46;  ///< without name and extra fields
constexpr std::size_t directory_end_bytes = 22;    ///< without its comment
constexpr std::size_t directory_end_64_bytes = 56;
constexpr std::size_t directory_locator_64_bytes = 20;

constexpr std::uint16_t sizes_of_64_bits = 1;     ///< extra field with sizes and offsets of 64 bits
constexpr std::uint16_t padding = 0x4246;         ///< extra field with which PyTorch aligns data
constexpr std::uint32_t in_64_bits = 0xffffffff;  ///< value of a 32-bit field whose number is in the extra field
constexpr std::uint16_t version_with_64_bits = 45;

/// Takes numbers from the front of bytes. The caller must check left() first.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_left_(bytes) {}

  std::size_t left() const { return bytes_left_.size(); }
  std::string_view bytes(std::size_t count) {
    const auto front = bytes_left_.substr(0, count);
    bytes_left_.remove_prefix(count);
    return front;
  }
  std::uint16_t u16() { return take<std::uint16_t>(); }
  std::uint32_t u32() { return take<std::uint32_t>(); }
  std::uint64_t u64() { return take<std::uint64_t>(); }
  void skip(std::size_t count) { bytes_left_.remove_prefix(count); }

 private:
  template <typename Number>
  Number take() {
    Number number = 0;
    std::memcpy(&number, bytes(sizeof number).data(), sizeof number);
    return number;
  }

  std::string_view bytes_left_;
};

/// Appends numbers and bytes.
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
