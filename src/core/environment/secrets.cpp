#include "core/environment/secrets.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/text/text.hpp"

namespace hortator::core {
namespace {

constexpr std::array<std::string_view, 12> markers = {"TOKEN", "SECRET", "PASS", "KEY",  "JWT",          "CRED",
                                                      "AUTH",  "COOKIE", "CERT", "_URI", "PRECONDITION", "BEARER"};
constexpr std::string_view hidden = "(not shown)";

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

}  // namespace

bool is_secret(std::string_view name) {
  const auto capitals = upper(name);
  return std::any_of(markers.begin(), markers.end(),
                     [&](auto marker) { return capitals.find(marker) != std::string::npos; });
}

std::string secret_names() { return text::join(markers, "|"); }

std::string shown_value(std::string_view name, std::string_view value) {
  if (is_secret(name)) return std::string(hidden);
  std::string shown(value);
  for (auto at = shown.find("://"); at != std::string::npos; at = shown.find("://", at)) {
    at += 3;
    const auto end = shown.find_first_of("/ \n", at);
    const auto user_end = shown.substr(0, end).rfind('@');
    if (user_end != std::string::npos && user_end >= at) shown.replace(at, user_end - at, hidden);
  }
  return shown;
}

}  // namespace hortator::core
