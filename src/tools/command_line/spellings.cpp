#include <algorithm>
#include <iomanip>
#include <sstream>

#include "core/text/text.hpp"
#include "launch/settings/accelerate_names.hpp"
#include "launch/settings/synonyms.hpp"
#include "tools/command_line/command_line.hpp"

namespace hortator::tools {
namespace {

using launching::Dialect;
using launching::Meaning;
using launching::Support;

// What --help says of a spelling.
std::string synonym_line(const launching::Synonym& synonym) {
  switch (synonym.meaning) {
    case Meaning::setting:
      return "--" + launching::flag_of(launching::find_key(synonym.text, ""));
    case Meaning::gres:
      return "--gpus-per-node, for GPUs";
    case Meaning::resources:
      return "--nodes, --ranks-per-node, --time and others";
    case Meaning::variables:
      return "--environment";
    case Meaning::mail_points:
      return "--mail-type";
    case Meaning::attributes:
      return "--dependency, or a line for PBS";
    case Meaning::directive:
    case Meaning::pbs_line:
    case Meaning::option:
      return text::concat("passed on to ", launching::name_of(synonym.dialect));
    case Meaning::noted:
      return "accepted without effect";
    case Meaning::refused:
      return "";
  }
  return "";
}

// Whether arguments without a name are stored under it.
bool is_text(const std::string& name, const Options& options) {
  const auto& texts = options.positional;
  if (texts.max_total_count() == 0) return false;
  const auto count = std::min(texts.max_total_count(), 8U);
  for (unsigned at = 0; at < count; ++at) {
    if (texts.name_for_position(at) == name) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> known_spellings(const Options& options) {
  std::vector<std::string> names;
  for (const auto& option : options.named.options()) {
    if (!is_text(option->long_name(), options)) names.push_back("--" + option->long_name());
  }
  if (!options.has_settings) return names;
  for (const auto& synonym : launching::synonyms()) {
    if (synonym.spelling.starts_with("--") && synonym.meaning != Meaning::refused) names.emplace_back(synonym.spelling);
  }
  for (const auto& row : launching::accelerate_names()) {
    if (row.source != launching::NameSource::file && row.support == Support::honoured)
      names.push_back("--" + std::string(row.name));
  }
  return names;
}

std::string synonym_help(const Options& options) {
  if (!options.has_settings) return "";
  std::vector<std::pair<std::string, Arguments>> lines;
  for (const auto& synonym : launching::synonyms()) {
    const bool is_setting = synonym.meaning == Meaning::setting;
    if (is_setting &&
        options.named.find_nothrow(launching::flag_of(launching::find_key(synonym.text, "")), false) == nullptr)
      continue;
    auto meaning = synonym_line(synonym);
    if (meaning.empty()) continue;
    if (synonym.dialect == Dialect::pbs) meaning += " (PBS)";
    auto line = std::find_if(lines.begin(), lines.end(), [&](const auto& known) { return known.first == meaning; });
    if (line == lines.end()) line = lines.insert(lines.end(), {meaning, {}});
    line->second.emplace_back(synonym.spelling);
  }
  std::ostringstream out;
  out << "\nSpellings of Slurm, PBS and mpirun, and what they mean here; flags of `accelerate launch` are accepted, "
         "too,\n"
         "and _ may stand for -. A short flag means what the scheduler at hand means by it:\n";
  for (const auto& [meaning, spellings] : lines) {
    std::string row = "  ";
    for (std::size_t i = 0; i < spellings.size(); ++i) {
      if (row.size() + spellings[i].size() > 76) {
        out << row << '\n';
        row = "  ";
      }
      row += spellings[i] + (i + 1 < spellings.size() ? ", " : "");
    }
    out << std::left << std::setw(44) << row << ' ' << meaning << '\n';
  }
  return std::move(out).str();
}

}  // namespace hortator::tools
