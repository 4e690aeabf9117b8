#include "formats/tar/header.hpp"

#include <algorithm>
#include <string_view>

namespace hortator::formats {
namespace {

constexpr std::size_t type_at = 156;
constexpr std::size_t sum_at = 148, sum_bytes = 8;
constexpr std::uint64_t max_number = std::uint64_t{1} << 62;

[[noreturn]] void refuse_number() {
  throw TarFault("a header has a number that is not valid: the archive is damaged, or not a tar archive");
}

/// For large numbers: bytes; the first has its highest bit set.
std::uint64_t binary_number(std::string_view bytes) {
  std::uint64_t number = static_cast<unsigned char>(bytes.front()) & 0x7FU;
  for (const auto byte : bytes.substr(1)) {
    if (number > max_number / 256) refuse_number();
    number = number * 256 + static_cast<unsigned char>(byte);
  }
  return number;
}

/// Octal digits between spaces and zeros.
std::uint64_t octal_number(std::string_view digits) {
  std::uint64_t number = 0;
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  for (const auto digit : digits) {
    if (digit == ' ' || digit == 0) break;
    if (digit < '0' || digit > '7' || number > max_number / 8) refuse_number();
    number = number * 8 + static_cast<std::uint64_t>(digit - '0');
  }
  return number;
}

}  // namespace

bool TarHeader::is_zero() const {
  return std::ranges::all_of(block_, [](char byte) { return byte == 0; });
}

// The sum of all bytes, with spaces in place of the sum itself. Some programs add them as signed numbers.
bool TarHeader::has_right_sum() const {
  std::uint64_t sum = 0;
  std::int64_t signed_sum = 0;
  for (std::size_t i = 0; i < block_.size(); ++i) {
    const char byte = i >= sum_at && i < sum_at + sum_bytes ? ' ' : block_[i];
    sum += static_cast<unsigned char>(byte);
    signed_sum += static_cast<signed char>(byte);
  }
  const auto stored = number_in({sum_at, sum_bytes});
  return stored == sum || static_cast<std::int64_t>(stored) == signed_sum;
}

char TarHeader::type() const { return block_[type_at]; }

std::string TarHeader::name() const {
  const auto name = text_in({0, 100});
  const bool is_posix = std::string_view(block_.data() + 257, 6) == std::string_view("ustar\0", 6);
  const auto prefix = is_posix ? text_in({345, 155}) : std::string();  // GNU tar has other fields there
  return prefix.empty() ? name : prefix + "/" + name;
}

std::uint64_t TarHeader::bytes() const { return number_in({124, 12}); }

std::string TarHeader::text_in(const Field& field) const {
  const std::string_view all(block_.data() + field.begin, field.size);
  return std::string(all.substr(0, all.find('\0')));
}

std::uint64_t TarHeader::number_in(const Field& field) const {
  const std::string_view all(block_.data() + field.begin, field.size);
  const bool is_binary = (static_cast<unsigned char>(all.front()) & 0x80U) != 0;
  return is_binary ? binary_number(all) : octal_number(all);
}

}  // namespace hortator::formats
