#include "observe/trackers/wire.hpp"

#include <bit>
#include <cstring>

namespace hortator::observe {
namespace {

// Wire types.
constexpr int varint = 0;
constexpr int eight_bytes = 1;
constexpr int length_delimited = 2;
constexpr int four_bytes = 5;

}  // namespace

void Wire::put_varint(std::uint64_t value) {
  for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
  bytes_ += static_cast<char>(value);
}

void Wire::put_tag(int field, int kind) { put_varint(static_cast<std::uint64_t>(field) << 3 | unsigned(kind)); }

// The format is little-endian, as are all supported machines.
template <typename T>
void Wire::put_raw(T value) {
  static_assert(std::endian::native == std::endian::little);
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes_.append(raw, sizeof value);
}

Wire& Wire::put_int(int field, std::int64_t value) {
  put_tag(field, varint);
  put_varint(static_cast<std::uint64_t>(value));
  return *this;
}

Wire& Wire::put_double(int field, double value) {
  put_tag(field, eight_bytes);
  put_raw(value);
  return *this;
}

Wire& Wire::put_float(int field, float value) {
  put_tag(field, four_bytes);
  put_raw(value);
  return *this;
}

Wire& Wire::put_bytes(int field, std::string_view bytes) {
  put_tag(field, length_delimited);
  put_varint(bytes.size());
  bytes_ += bytes;
  return *this;
}

Wire& Wire::put_doubles(int field, std::span<const double> values) {
  put_tag(field, length_delimited);
  put_varint(values.size_bytes());
  for (const double value : values) put_raw(value);
  return *this;
}

}  // namespace hortator::observe
