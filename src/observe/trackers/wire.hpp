#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hortator::observe {

/// Builds one message in the wire format of protocol buffers, field by field; only the types that event files need.
class Wire {
 public:
  Wire& put_int(int field, std::int64_t value);
  Wire& put_double(int field, double value);
  Wire& put_float(int field, float value);
  Wire& put_bytes(int field, std::string_view bytes);
  Wire& put_message(int field, const Wire& message) { return put_bytes(field, message.bytes()); }
  Wire& put_doubles(int field, std::span<const double> values);  ///< packed

  const std::string& bytes() const { return bytes_; }

 private:
  void put_tag(int field, int kind);
  void put_varint(std::uint64_t value);
  template <typename T>
  void put_raw(T value);

  std::string bytes_;
};

}  // namespace hortator::observe
