#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "formats/torch/pickle/code.hpp"

namespace hortator::formats::pickle {

/// Reads a pickle from front to back. Every member throws PickleFault if the pickle ends too early.
class Input {
 public:
  explicit Input(std::string_view pickle) : pickle_(pickle) {}

  std::size_t bytes() const { return pickle_.size(); }
  template <typename Number>
  Number number() {
    Number value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  unsigned char byte() { return number<unsigned char>(); }
  Code code() { return Code{byte()}; }
  std::string text(std::uint64_t bytes);  ///< must be UTF-8
  std::string line();
  double real();
  /// A little-endian two's complement number of any length; returns nothing if it does not fit 64 bits.
  std::optional<std::int64_t> long_number();

  /// Throws PickleFault with the offset in the pickle.
  [[noreturn]] void fail(std::string_view why) const;

 private:
  std::string_view take(std::uint64_t count);

  std::string_view pickle_;
  std::size_t at_ = 0;
};

}  // namespace hortator::formats::pickle
