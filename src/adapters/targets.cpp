#include "adapters/targets.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <hortator/error.hpp>
#include <optional>
#include <regex>

#include "core/text/text.hpp"

namespace hortator::adapters {
namespace {

bool matches_whole(const std::string& pattern, const std::string& name) {
  try {
    return std::regex_match(name, std::regex(pattern));
  } catch (const std::regex_error& error) {
    throw UsageError(
        {.what = text::concat("Cannot use the regular expression ", text::quote(pattern), ": ", error.what()),
         .why = "it chooses the layers of an adapter, and is read as ECMAScript's",
         .hint = "list the names of the layers instead"});
  }
}

/// An entry of rank_pattern: the end of a name from a dot on, or a regular expression for it.
bool fits_end(const std::string& pattern, const std::string& name) {
  return ends_with_name(name, pattern) || matches_whole(text::concat("(.*\\.)?(", pattern, ")"), name);
}

template <typename Value>
Value value_by_pattern(const std::vector<std::pair<std::string, Value>>& patterns, const std::string& name,
                       Value otherwise) {
  for (const auto& [pattern, value] : patterns)
    if (fits_end(pattern, name)) return value;
  return otherwise;
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 ? std::optional(number) : std::nullopt;
}

/// The number of the layer: the first part of the name that is a number with parts on both sides.
std::optional<std::int64_t> layer_number(const LoraOptions& options, const std::string& name) {
  const auto parts = text::split(name, '.');
  if (!options.layers_pattern.empty()) {
    for (const auto& pattern : options.layers_pattern) {
      for (std::size_t i = 0; i + 2 < parts.size(); ++i)
        if (const auto number = number_in(parts[i + 1]); number && matches_whole(pattern, parts[i])) return number;
    }
    return {};
  }
  for (std::size_t i = 2; i + 1 < parts.size(); ++i)  // as peft: some module, then the list of layers
    if (const auto number = number_in(parts[i])) return number;
  return {};
}

bool is_in_layers(const LoraOptions& options, const std::string& name) {
  if (options.layers_to_transform.empty()) return true;
  const auto number = layer_number(options, name);
  return number && std::ranges::find(options.layers_to_transform, *number) != options.layers_to_transform.end();
}

bool is_excluded(const LoraOptions& options, const std::string& name) {
  if (!options.exclude_pattern.empty() && matches_whole(options.exclude_pattern, name)) return true;
  return std::ranges::any_of(options.exclude, [&](const auto& end) { return ends_with_name(name, end); });
}

[[noreturn]] void refuse(std::string what, const char* why, const char* hint) {
  throw UsageError({.what = std::move(what), .why = why, .hint = hint});
}

void require_rank(std::int64_t rank, const std::string& field) {
  if (rank >= 1) return;
  refuse(text::concat(field, ": expected a whole number from 1, got ", rank), "an adapter is a product of two matrices",
         "8 and 16 are common");
}

}  // namespace

void require_valid(const LoraOptions& options) {
  require_rank(options.rank, "LoraOptions::rank");
  for (const auto& [pattern, rank] : options.rank_pattern)
    require_rank(rank, text::concat("LoraOptions::rank_pattern of ", text::quote(pattern)));
  if (!std::isfinite(options.alpha))
    refuse("LoraOptions::alpha: expected a finite number", "it scales the adapter's outputs", "it is often 2 * rank");
  if (!(options.dropout >= 0 && options.dropout < 1))
    refuse(text::concat("LoraOptions::dropout: expected a number from 0 below 1, got ", options.dropout),
           "it is the probability with which an input is dropped", "0.05 is common");
  if (options.name.empty() || options.name.find('.') != std::string::npos)
    refuse(text::concat("LoraOptions::name: expected a name without dots, got ", text::quote(options.name)),
           "it becomes a part of parameters' names", "'default' is peft's");
  if (!options.targets.empty() && !options.target_pattern.empty())
    refuse("LoraOptions has both targets and target_pattern", "each chooses the layers", "leave out one of them");
  if (options.lora_bias && options.use_dora)
    refuse("LoraOptions has lora_bias and use_dora", "peft has no bias in DoRA", "leave out one of them");
  if (!options.layers_pattern.empty() && options.layers_to_transform.empty())
    refuse("LoraOptions has layers_pattern without layers_to_transform", "it says where the numbers of layers stand",
           "give the numbers of the layers as well");
  if (!options.layers_to_transform.empty() && (!options.target_pattern.empty() || means_all_linear(options)))
    refuse("LoraOptions has layers_to_transform, and target_pattern or all-linear",
           "peft applies numbers of layers to lists of names only", "put the numbers into the pattern");
}

bool means_all_linear(const LoraOptions& options) {
  return options.targets.size() == 1 && options.targets.front() == "all-linear";
}

bool ends_with_name(std::string_view name, std::string_view end) {
  if (!name.ends_with(end)) return false;
  return name.size() == end.size() || name[name.size() - end.size() - 1] == '.';
}

bool is_saved_as_whole(const LoraOptions& options, const std::string& name) {
  return std::ranges::any_of(options.modules_to_save, [&](const std::string& module) {
    return ends_with_name(name, module) || name.starts_with(module + ".") ||
           name.find("." + module + ".") != std::string::npos;
  });
}

bool is_trained_as_whole(const LoraOptions& options, std::string_view name) {
  for (;;) {
    if (std::ranges::any_of(options.modules_to_save, [&](const auto& end) { return name.ends_with(end); })) return true;
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos) return false;
    name = name.substr(0, dot);
  }
}

bool is_target(const LoraOptions& options, const std::string& name) {
  if (is_excluded(options, name) || is_saved_as_whole(options, name)) return false;
  if (!options.target_pattern.empty()) return matches_whole(options.target_pattern, name);
  const auto fits = [&](const std::string& target) { return ends_with_name(name, target); };
  if (std::ranges::find(options.targets, name) != options.targets.end()) return true;  // whatever its layer
  return std::ranges::any_of(options.targets, fits) && is_in_layers(options, name);
}

std::int64_t rank_of(const LoraOptions& options, const std::string& name) {
  return value_by_pattern(options.rank_pattern, name, options.rank);
}

double scaling_of(const LoraOptions& options, const std::string& name) {
  const auto alpha = value_by_pattern(options.alpha_pattern, name, options.alpha);
  const auto rank = static_cast<double>(rank_of(options, name));
  return alpha / (options.use_rslora ? std::sqrt(rank) : rank);
}

std::vector<std::string> default_targets(std::span<const std::string> names) {
  static const std::array<std::vector<std::string>, 4> known = {
      {{"q_proj", "v_proj"}, {"c_attn"}, {"query", "value"}, {"q_lin", "v_lin"}}};
  for (const auto& targets : known) {
    const auto has = [&](const std::string& target) {
      return std::ranges::any_of(names, [&](const auto& name) { return ends_with_name(name, target); });
    };
    if (std::ranges::all_of(targets, has)) return targets;
  }
  return {};
}

}  // namespace hortator::adapters
