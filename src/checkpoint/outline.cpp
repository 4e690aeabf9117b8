#include "checkpoint/outline.hpp"

#include <algorithm>

#include "checkpoint/pack.hpp"
#include "core/text/text.hpp"

namespace hortator::checkpoint {
namespace {

std::string describe(const Entry& entry) {
  constexpr std::size_t max_letters = 60;
  if (const auto* words = std::get_if<std::string>(&entry.content)) return text::quote(words->substr(0, max_letters));
  if (const auto* spec = std::get_if<formats::TensorSpec>(&entry.content)) return formats::to_string(*spec);
  if (const auto* whole = std::get_if<std::int64_t>(&entry.content)) return std::to_string(*whole);
  std::ostringstream number;
  number.precision(17);
  number << std::get<double>(entry.content);
  return number.str();
}

// Bitwise: NaN equals itself, and 0 is not -0.
bool same(const Entry& a, const Entry& b) { return pack({a}) == pack({b}); }

}  // namespace

Outline outline_of(const StateDict& state) {
  Outline outline;
  for (const auto& [name, value] : state.values()) {
    Entry entry = {.name = name};
    std::visit(
        [&]<typename T>(const T& content) {
          if constexpr (std::is_same_v<T, at::Tensor>) {
            entry.content = formats::spec_of(content);
          } else {
            entry.content = content;
          }
        },
        value);
    outline.push_back(std::move(entry));
  }
  return outline;
}

std::string first_difference(const Outline& here, const Outline& there) {
  for (std::size_t i = 0; i < std::max(here.size(), there.size()); ++i) {
    const bool only_here = i >= there.size() || (i < here.size() && here[i].name < there[i].name);
    if (only_here) return text::quote(here[i].name) + " is here and not there";
    if (i >= here.size() || there[i].name < here[i].name) return text::quote(there[i].name) + " is there and not here";
    if (!same(here[i], there[i])) {
      return text::concat(text::quote(here[i].name), " is ", describe(here[i]), " here and ", describe(there[i]),
                          " there");
    }
  }
  return "";
}

}  // namespace hortator::checkpoint
