#include "launch/settings/synonyms.hpp"

#include <algorithm>
#include <array>

#include "launch/settings/accelerate_names.hpp"
#include "launch/settings/keys.hpp"

namespace hortator::launching {

// Not unnamed: the short names of the table would meet those of other files.
namespace synonym_table {
using enum Meaning;
using enum Dialect;
using enum Takes;

constexpr auto known = std::to_array<Synonym>({
#include "launch/settings/synonyms.inc"
});
}  // namespace synonym_table

namespace {

using synonym_table::known;

bool has_spelling(const Synonym& synonym, std::string_view spelling) { return synonym.spelling == spelling; }

const Synonym* find_exact(std::string_view spelling, Dialect dialect) {
  const Synonym* found = nullptr;
  for (const auto& synonym : known) {
    if (!has_spelling(synonym, spelling)) continue;
    if (synonym.dialect == dialect) return &synonym;
    if (found == nullptr || synonym.dialect == Dialect::any) found = &synonym;
  }
  return found;
}

bool is_for_files(const Synonym& synonym) {
  return synonym.meaning == Meaning::setting && synonym.takes == Takes::value && synonym.spelling.starts_with("--");
}

std::string name_in_files(std::string_view spelling) {
  std::string name(spelling.substr(2));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

std::span<const Synonym> synonyms() { return known; }

const Synonym* find_synonym(std::string_view argument, Dialect dialect) {
  const auto* whole = find_exact(argument.substr(0, argument.find('=')), dialect);
  if (whole != nullptr || argument.starts_with("--")) return whole;
  return find_exact(argument.substr(0, 2), dialect);
}

std::string_view key_of_synonym(std::string_view name) {
  for (const auto& synonym : known) {
    if (is_for_files(synonym) && name_in_files(synonym.spelling) == name) return synonym.text;
  }
  for (const auto& row : accelerate_names()) {
    if (row.name == name && has_same_values(row)) return row.key;
  }
  return "";
}

std::vector<std::string> synonyms_in_files() {
  std::vector<std::string> names;
  for (const auto& synonym : known) {
    if (is_for_files(synonym)) names.push_back(name_in_files(synonym.spelling));
  }
  for (const auto& row : accelerate_names()) {
    if (has_same_values(row)) names.emplace_back(row.name);
  }
  return names;
}

std::string_view name_of(Dialect dialect) {
  return dialect == Dialect::slurm ? "Slurm" : dialect == Dialect::pbs ? "PBS" : "mpirun";
}

bool has_option(Dialect dialect, std::string_view argument) {
  const auto name = argument.substr(0, argument.find_first_of("= "));
  return std::any_of(known.begin(), known.end(), [&](const Synonym& synonym) {
    const bool is_passed_on = synonym.meaning == Meaning::option || synonym.meaning == Meaning::directive;
    return is_passed_on && synonym.dialect == dialect && has_spelling(synonym, name);
  });
}

}  // namespace hortator::launching
