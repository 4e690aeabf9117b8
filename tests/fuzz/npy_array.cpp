// Fuzzes the reader of .npy headers: any bytes are refused, or describe an array.
#include <cstdint>
#include <span>
#include <string_view>

#include "data/files/npy_header.hpp"
#include "target.hpp"

using namespace hortator;

namespace {

void check_npy(std::string_view header) {
  try {
    const auto array = data::parse_npy_header(header);
    for (const auto size : array.shape) {
      if (size < 0) __builtin_trap();
    }
  } catch (const data::NpyFault&) {
  }
}

}  // namespace

FUZZ_TARGET(npy_array) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_npy(text);
  try {
    const auto begin = data::npy_data_offset(std::span(data, size).first(std::min(size, data::npy_beginning_bytes)));
    if (begin < data::npy_beginning_bytes - 2) __builtin_trap();
    if (begin <= size) check_npy(text.substr(10, begin - 10));
  } catch (const data::NpyFault&) {
  }
  return 0;
}
