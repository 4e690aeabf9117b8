#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hortator::runtime {

/// A row of a fixed size, padded with blanks, built without memory from the heap: a signal handler may use it. What
/// does not fit is cut.
template <std::size_t bytes>
class FixedText {
 public:
  FixedText() { bytes_.fill(' '); }

  FixedText& add(std::string_view text) {
    for (const char c : text) {
      if (size_ < bytes - 1) bytes_[size_++] = c;
    }
    return *this;
  }
  FixedText& add(std::uint64_t number, int base = 10) {
    std::array<char, 24> digits{};
    std::size_t at = digits.size();
    do {
      digits[--at] = "0123456789abcdef"[number % static_cast<std::uint64_t>(base)];
      number /= static_cast<std::uint64_t>(base);
    } while (number > 0);
    return add(std::string_view(&digits[at], digits.size() - at));
  }
  /// A time in seconds with `digits` decimal places.
  FixedText& add_seconds(double seconds, int digits) {
    std::uint64_t scale = 1;
    for (int i = 0; i < digits; ++i) scale *= 10;
    const auto whole = static_cast<std::uint64_t>(seconds);
    const auto rest = static_cast<std::uint64_t>((seconds - static_cast<double>(whole)) * static_cast<double>(scale));
    add(whole).add(".");
    for (auto power = scale / 10; power > std::max<std::uint64_t>(rest, 1); power /= 10) add("0");
    return add(rest);
  }
  /// The row, with its line break.
  std::string_view row() {
    bytes_.back() = '\n';
    return {bytes_.data(), bytes_.size()};
  }

 private:
  std::array<char, bytes> bytes_{};
  std::size_t size_ = 0;
};

}  // namespace hortator::runtime
