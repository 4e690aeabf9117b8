#include "checkpoint/json_value.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::checkpoint {
namespace {

using nlohmann::json;

constexpr std::string_view digits = "0123456789abcdef";

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    hex += digits[value >> 4];
    hex += digits[value & 15];
  }
  return hex;
}

[[noreturn]] void refuse_hex(const std::string& hex) {
  throw formats::FileError({.what = "expected a hexadecimal number, got " + text::quote(hex)});
}

std::string bytes_of(const std::string& hex) {
  std::string bytes(hex.size() / 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto high = digits.find(hex[2 * i]);
    const auto low = digits.find(hex[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) refuse_hex(hex);
    bytes[i] = static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::string bits_of(double value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, std::bit_cast<std::uint64_t>(value));
  return text.data();
}

double real_of(const std::string& hex) {
  std::uint64_t bits = 0;
  const auto* end = hex.data() + hex.size();
  if (std::from_chars(hex.data(), end, bits, 16).ptr != end || hex.size() != 16) refuse_hex(hex);
  return std::bit_cast<double>(bits);
}

}  // namespace

json json_of(const StateDict::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* real = std::get_if<double>(&value))
    return std::isfinite(*real) ? json(*real) : json{{"real", bits_of(*real)}};
  const auto& text = std::get<std::string>(value);
  return !core::is_utf8(text) ? json{{"bytes", hex_of(text)}} : json(text);
}

void put_value(StateDict& values, const std::string& name, const json& value) {
  if (value.is_number_float()) return values.put(name, value.get<double>());
  if (value.is_number()) return values.put(name, value.get<std::int64_t>());
  if (value.is_string()) return values.put(name, value.get<std::string>());
  if (value.contains("real")) return values.put(name, real_of(value.at("real").get<std::string>()));
  values.put(name, bytes_of(value.at("bytes").get<std::string>()));
}

}  // namespace hortator::checkpoint
