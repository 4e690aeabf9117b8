#include "checkpoint/manifest_value.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::checkpoint {
namespace {

using nlohmann::json;

constexpr std::string_view digits = "0123456789abcdef";

std::string hex_of(std::string_view bytes) {
  std::string words;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    words += digits[value >> 4];
    words += digits[value & 15];
  }
  return words;
}

std::string bytes_of(const std::string& hex) {
  std::string bytes(hex.size() / 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto high = digits.find(hex[2 * i]);
    const auto low = digits.find(hex[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos)
      throw formats::FileError({.what = "a text of its is no hexadecimal number"});
    bytes[i] = static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::string bits_of(double value) {
  std::array<char, sizeof value> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  return {bytes.rbegin(), bytes.rend()};
}

double real_of(std::string bits) {
  double value = 0;
  bits.resize(sizeof value);
  std::reverse(bits.begin(), bits.end());
  std::memcpy(&value, bits.data(), sizeof value);
  return value;
}

}  // namespace

bool is_utf8(const std::string& words) {
  for (std::size_t i = 0; i < words.size();) {
    const auto first = static_cast<unsigned char>(words[i]);
    const int more = first < 0x80 ? 0 : first < 0xc2 ? -1 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : -1;
    if (more < 0 || i + static_cast<std::size_t>(more) >= words.size()) return false;
    std::uint32_t point = more == 0 ? first : first & (0x3fU >> more);
    for (int k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(words[i + static_cast<std::size_t>(k)]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3f);
    }
    const bool is_short = (more == 2 && point < 0x800) || (more == 3 && (point < 0x10000 || point > 0x10ffff));
    if (is_short || (point >= 0xd800 && point < 0xe000)) return false;
    i += static_cast<std::size_t>(more) + 1;
  }
  return true;
}

json json_of(const StateDict::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* real = std::get_if<double>(&value))
    return std::isfinite(*real) ? json(*real) : json{{"real", hex_of(bits_of(*real))}};
  const auto& words = std::get<std::string>(value);
  return is_utf8(words) ? json(words) : json{{"bytes", hex_of(words)}};
}

void put_value(StateDict& values, const std::string& name, const json& value) {
  if (value.is_number_float()) return values.put(name, value.get<double>());
  if (value.is_number()) return values.put(name, value.get<std::int64_t>());
  if (value.is_string()) return values.put(name, value.get<std::string>());
  if (value.contains("real")) return values.put(name, real_of(bytes_of(value.at("real").get<std::string>())));
  values.put(name, bytes_of(value.at("bytes").get<std::string>()));
}

}  // namespace hortator::checkpoint
