#include "tools/command_line/given_settings.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::tools {

std::optional<std::size_t> GivenSettings::add(const std::string& flag, Option option) {
  const auto [entry, is_first] = options_.try_emplace(flag, option);
  if (is_first) return {};
  auto& earlier = entry->second;
  if (earlier.typed != option.typed && earlier.value != option.value) {
    throw UsageError({.what = text::concat(earlier.typed, " and ", option.typed, " both set --", flag, ", to ",
                                           text::quote(earlier.value), " and to ", text::quote(option.value)),
                      .hint = "leave out one of them"});
  }
  earlier.value = std::move(option.value);
  return earlier.position;
}

}  // namespace hortator::tools
