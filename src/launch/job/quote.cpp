#include "launch/job/quote.hpp"

#include <vector>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

constexpr std::string_view needs_no_quotes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

}  // namespace

std::string shell_quote(std::string_view argument) {
  if (!argument.empty() && argument.find_first_not_of(needs_no_quotes) == std::string_view::npos)
    return std::string(argument);
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(std::span<const std::string> arguments) {
  std::vector<std::string> quoted;
  for (const auto& argument : arguments) quoted.push_back(shell_quote(argument));
  return text::join(quoted, " ");
}

}  // namespace hortator::launching
