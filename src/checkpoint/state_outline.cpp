#include "checkpoint/state_outline.hpp"

#include <algorithm>
#include <array>

#include "checkpoint/packed_bytes.hpp"
#include "core/text/text.hpp"

namespace hortator::checkpoint {
namespace {

void put_content(std::string& bytes, const formats::TensorSpec& spec) {
  put(bytes, static_cast<std::int64_t>(spec.type));
  put(bytes, spec.shape);
}

template <typename T>
void put_content(std::string& bytes, const T& value) {
  put(bytes, value);
}

template <typename T>
decltype(OutlineEntry::content) take_content(PackedBytes& from) {
  return from.take<T>();
}

template <>
decltype(OutlineEntry::content) take_content<formats::TensorSpec>(PackedBytes& from) {
  formats::TensorSpec spec;
  spec.type = static_cast<at::ScalarType>(from.take<std::int64_t>());
  from.take(spec.shape);
  return spec;
}

std::string describe(const OutlineEntry& entry) {
  constexpr std::size_t max_characters = 60;
  if (const auto* string = std::get_if<std::string>(&entry.content))
    return text::quote(string->substr(0, max_characters));
  if (const auto* spec = std::get_if<formats::TensorSpec>(&entry.content)) return formats::to_string(*spec);
  if (const auto* whole = std::get_if<std::int64_t>(&entry.content)) return std::to_string(*whole);
  std::ostringstream number;
  number.precision(17);
  number << std::get<double>(entry.content);
  return number.str();
}

/// Compares bits: NaN equals itself, and 0 differs from -0.
bool is_same(const OutlineEntry& a, const OutlineEntry& b) { return pack({a}) == pack({b}); }

}  // namespace

StateOutline outline_of(const StateDict& state) {
  StateOutline outline;
  for (const auto& [name, value] : state.values()) {
    OutlineEntry entry = {.name = name};
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

std::string first_difference(const StateOutline& here, const StateOutline& there) {
  for (std::size_t i = 0; i < std::max(here.size(), there.size()); ++i) {
    const bool only_here = i >= there.size() || (i < here.size() && here[i].name < there[i].name);
    if (only_here) return text::quote(here[i].name) + " is here and not there";
    if (i >= here.size() || there[i].name < here[i].name) return text::quote(there[i].name) + " is there and not here";
    if (!is_same(here[i], there[i])) {
      return text::concat(text::quote(here[i].name), " is ", describe(here[i]), " here and ", describe(there[i]),
                          " there");
    }
  }
  return "";
}

std::string pack(const StateOutline& outline) {
  std::string bytes;
  for (const auto& [name, content] : outline) {
    put(bytes, name);
    put(bytes, static_cast<std::int64_t>(content.index()));
    std::visit([&](const auto& value) { put_content(bytes, value); }, content);
  }
  return bytes;
}

StateOutline unpack(std::string_view bytes) {
  // One for each alternative of OutlineEntry::content, in its order.
  constexpr std::array take = {&take_content<std::int64_t>, &take_content<double>, &take_content<std::string>,
                               &take_content<formats::TensorSpec>};
  StateOutline outline;
  for (PackedBytes from(bytes); !from.is_empty();) {
    OutlineEntry entry;
    from.take(entry.name);
    entry.content = take.at(static_cast<std::size_t>(from.take<std::int64_t>()))(from);
    outline.push_back(std::move(entry));
  }
  return outline;
}

}  // namespace hortator::checkpoint
