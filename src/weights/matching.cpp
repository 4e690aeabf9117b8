#include "weights/matching.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>
#include <set>

#include "core/text/text.hpp"

namespace hortator::weights {
namespace {

constexpr std::size_t max_listed = 20;

std::string list(std::vector<std::string> lines) {
  const auto all = lines.size();
  if (all > max_listed) lines.resize(max_listed);
  return text::join(lines) + (all > max_listed ? text::concat(" and ", all - max_listed, " more") : "");
}

std::string shown(const std::string& stored, const std::string& renamed) {
  return stored == renamed ? text::quote(stored)
                           : text::concat(text::quote(stored), " (as ", text::quote(renamed), ")");
}

/// The name in the file of each wanted tensor, or empty.
using Found = std::vector<std::string>;

Found find(const std::vector<Wanted>& wanted, const weights::WeightSource& source, const Renaming& rename,
           Matching& matching) {
  std::map<std::string, std::size_t> indices;
  for (std::size_t i = 0; i < wanted.size(); ++i) indices.emplace(wanted[i].name, i);
  Found found(wanted.size());
  for (const auto& stored : source.names()) {
    const auto name = rename(stored);
    const auto index = indices.find(name);
    if (index == indices.end()) {
      matching.unexpected.push_back(shown(stored, name));
    } else if (auto& other = found[index->second]; !other.empty()) {
      matching.unlike.push_back(
          text::concat(text::quote(other), " and ", text::quote(stored), ", which both become ", text::quote(name)));
    } else {
      other = stored;
    }
  }
  return found;
}

std::string with_other_names(const std::vector<Wanted>& wanted, std::size_t first) {
  std::vector<std::string> others;
  for (std::size_t i = first + 1; i < wanted.size(); ++i) {
    if (wanted[i].first == first) others.push_back(text::quote(wanted[i].name));
  }
  const auto& [name, spec, itself] = wanted[first];
  return text::concat(text::quote(name), others.empty() ? "" : " (tied to " + text::join(others) + ")", ", ",
                      formats::to_string(spec));
}

/// A tensor is loaded under the first of its names that the file has.
void pair(const std::vector<Wanted>& wanted, const Found& found, Matching& matching) {
  std::map<std::size_t, std::size_t> loaded;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (found[i].empty()) continue;
    const bool is_first = loaded.emplace(wanted[i].first, i).second;
    (is_first ? matching.loads : matching.twins).push_back({.wanted = i, .stored = found[i]});
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].first == i && !loaded.contains(i)) matching.missing.push_back(with_other_names(wanted, i));
  }
}

void compare(const std::vector<Wanted>& wanted, const weights::WeightSource& source, Matching& matching) {
  for (const auto* pairs : {&matching.loads, &matching.twins}) {
    for (const auto& [index, stored] : *pairs) {
      const auto& [name, here, first] = wanted[index];
      const auto there = source.spec(stored);
      if (here.shape == there.shape && converts(there.type, here.type)) continue;
      matching.unlike.push_back(text::concat(shown(stored, name), ", ", formats::to_string(here), " in the model and ",
                                             formats::to_string(there), " in the file"));
    }
  }
}

void sort_by_file(Matching& matching, const weights::WeightSource& source) {
  std::map<std::string, std::size_t> indices;
  for (const auto& name : source.names()) indices.emplace(name, indices.size());
  std::ranges::sort(matching.loads, {}, [&](const Matching::Pair& pair) { return indices.at(pair.stored); });
}

/// Suggests the prefix that one side adds to most names of the other.
void suggest(const std::vector<Wanted>& wanted, const weights::WeightSource& source, Matching& matching) {
  std::set<std::string> here;
  for (const auto& one : wanted) here.insert(one.name);
  const std::set<std::string> there(source.names().begin(), source.names().end());
  const auto prefix_of = [](const std::set<std::string>& longer, const std::set<std::string>& shorter) {
    std::map<std::string, std::size_t> counts;
    for (const auto& name : longer) {
      for (auto point = name.find('.'); point != std::string::npos; point = name.find('.', point + 1)) {
        if (shorter.contains(name.substr(point + 1))) ++counts[name.substr(0, point)];
      }
    }
    const auto best = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
    return best != counts.end() && 2 * best->second > shorter.size() ? best->first : std::string();
  };
  if (const auto prefix = prefix_of(there, here); !prefix.empty()) {
    matching.rules.push_back(text::concat(R"({")", prefix, R"(", ""})"));
  } else if (const auto added = prefix_of(here, there); !added.empty()) {
    matching.rules.push_back(text::concat(R"({"", ")", added, R"("})"));
  }
}

std::vector<std::string> lines_of(const Matching& matching) {
  std::vector<std::string> lines;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) lines.push_back(text::concat(what, ' ', list(names)));
  };
  add("missing", matching.missing);
  add("unexpected", matching.unexpected);
  add("unlike", matching.unlike);
  return lines;
}

}  // namespace

bool converts(at::ScalarType from, at::ScalarType to) {
  if (from == to) return true;
  const auto holds_parts = [](at::ScalarType type) { return type == at::ScalarType::Float4_e2m1fn_x2; };
  if (holds_parts(from) || holds_parts(to)) return false;
  if (c10::isFloatingType(from)) return c10::isFloatingType(to);
  if (!c10::isIntegralType(from, false) || !c10::isIntegralType(to, false)) return false;
  const bool keeps_sign = c10::isSignedType(to) || !c10::isSignedType(from);
  return keeps_sign && c10::elementSize(to) > c10::elementSize(from);
}

Matching match(const std::vector<Wanted>& wanted, const weights::WeightSource& source, const Renaming& rename) {
  Matching matching;
  const auto found = find(wanted, source, rename, matching);
  pair(wanted, found, matching);
  compare(wanted, source, matching);
  sort_by_file(matching, source);
  if (!matching.missing.empty() && !matching.unexpected.empty()) suggest(wanted, source, matching);
  return matching;
}

void require_match(const Matching& matching, const weights::WeightSource& source, bool strict) {
  const bool fits = matching.unlike.empty() && (!strict || (matching.missing.empty() && matching.unexpected.empty()));
  if (fits) return;
  const auto hint = matching.rules.empty()
                        ? std::string("rename them with .rename, or load those that fit with .strict = false")
                        : text::concat("most names fit with .rename = {", text::join(matching.rules), "}");
  throw Error({.what = text::concat("The weights of ", source.path(),
                                    " do not fit the model: ", text::join(lines_of(matching), "; ")),
               .why = "nothing was changed",
               .hint = matching.unlike.empty() ? hint : "tensors of other shapes come from another model"});
}

std::string omissions(const Matching& matching, const weights::WeightSource& source) {
  if (matching.missing.empty() && matching.unexpected.empty()) return "";
  return text::concat("Not all weights of ", source.path(),
                      " were loaded, as strict = false allows: ", text::join(lines_of(matching), "; "));
}

}  // namespace hortator::weights
