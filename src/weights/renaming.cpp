#include <algorithm>
#include <hortator/bigmodel/weights.hpp>
#include <hortator/error.hpp>
#include <optional>
#include <utility>

#include "core/text/text.hpp"

namespace hortator {
namespace {

using NameParts = std::vector<std::string>;

constexpr const char* one_part = "*";
constexpr const char* any_parts = "**";

NameParts parts_of(std::string_view name) { return name.empty() ? NameParts() : text::split(name, '.'); }

/// What the stars of a pattern match in a name, and how many of the name's parts the pattern matches.
struct Match {
  std::vector<NameParts> stars = {};
  std::size_t parts = 0;
};

std::optional<Match> match_from(const NameParts& pattern, std::size_t begin, const NameParts& name, Match match) {
  for (auto wanted = begin; wanted < pattern.size(); ++wanted, ++match.parts) {
    if (match.parts == name.size()) return {};
    if (pattern[wanted] == one_part) {
      match.stars.push_back({name[match.parts]});
    } else if (pattern[wanted] != name[match.parts]) {
      return {};
    }
  }
  return match;
}

std::optional<Match> match(const NameParts& pattern, const NameParts& name) {
  if (pattern.empty() || pattern.front() != any_parts) return match_from(pattern, 0, name, {});
  for (std::size_t taken = 0; taken <= name.size(); ++taken) {
    const auto leading = NameParts(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(taken));
    if (auto found = match_from(pattern, 1, name, {.stars = {leading}, .parts = taken})) return found;
  }
  return {};
}

bool is_star(const std::string& part) { return part == one_part || part == any_parts; }

std::string apply(const Renaming::Rule& rule, std::string name) {
  const auto parts = parts_of(name);
  const auto found = match(parts_of(rule.from), parts);
  if (!found) return name;
  NameParts result;
  auto star = found->stars.begin();
  for (const auto& part : parts_of(rule.to)) {
    if (is_star(part)) {
      result.insert(result.end(), star->begin(), star->end());
      ++star;
    } else {
      result.push_back(part);
    }
  }
  result.insert(result.end(), parts.begin() + static_cast<std::ptrdiff_t>(found->parts), parts.end());
  return text::join(result, ".");
}

/// Returns the stars of one side in order. Throws unless "**" comes first or not at all.
std::vector<std::string> stars_in(const std::string& side) {
  const auto parts = parts_of(side);
  std::vector<std::string> stars;
  std::ranges::copy_if(parts, std::back_inserter(stars), is_star);
  const auto any = std::ranges::find(parts, any_parts);
  if (any == parts.end() || (any == parts.begin() && std::ranges::count(parts, any_parts) == 1)) return stars;
  throw UsageError({.what = text::concat("The renaming rule has ", text::quote(side)),
                    .why = "** may appear once, at the beginning, for any number of leading parts"});
}

void require_same_stars(const Renaming::Rule& rule) {
  if (stars_in(rule.from) == stars_in(rule.to)) return;
  throw UsageError({.what = text::concat("The renaming rule from ", text::quote(rule.from), " to ",
                                         text::quote(rule.to), " does not have the same stars on both sides"),
                    .why = "each star is replaced by what the star at the same position of the other side matches"});
}

}  // namespace

Renaming::Renaming(std::vector<Rule> rules) : rules_(std::move(rules)) {
  for (const auto& rule : rules_) require_same_stars(rule);
}

std::string Renaming::operator()(std::string_view name) const {
  std::string result(name);
  for (const auto& rule : rules_) result = apply(rule, std::move(result));
  return result;
}

Renaming Renaming::reversed() const {
  Renaming back;
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) back.rules_.push_back({rule->to, rule->from});
  return back;
}

}  // namespace hortator
