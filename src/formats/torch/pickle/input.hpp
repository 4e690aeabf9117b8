#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace hortator::formats::pickle {

/// The opcodes of the formats that torch.save and torch.distributed write; see Python's pickletools.
enum class Code : unsigned char {
  mark = '(',
  stop = '.',
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  int_8 = 'K',
  int_16 = 'M',
  int_32 = 'J',
  long_1 = 0x8a,
  real = 'G',
  text = 'X',
  short_text = 0x8c,
  long_text = 0x8d,
  ascii = 'U',
  short_bytes = 'C',
  bytes = 'B',
  global = 'c',
  stack_global = 0x93,
  persistent = 'Q',
  empty_tuple = ')',
  tuple = 't',
  tuple_1 = 0x85,
  tuple_2 = 0x86,
  tuple_3 = 0x87,
  empty_list = ']',
  append = 'a',
  appends = 'e',
  empty_dict = '}',
  set_item = 's',
  set_items = 'u',
  put = 'q',
  long_put = 'r',
  memoize = 0x94,
  get = 'h',
  long_get = 'j',
  reduce = 'R',
  new_object = 0x81,
  build = 'b',
  protocol = 0x80,
  frame = 0x95,
};

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
  void skip(std::uint64_t bytes) { take(bytes); }
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
