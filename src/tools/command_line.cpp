#include "tools/command_line.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <iomanip>
#include <iostream>

#include "core/text/text.hpp"
#include "launch/settings/accelerate_names.hpp"
#include "launch/settings/synonyms.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
using launching::Support;

std::string replaced(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

class CommandLine {
 public:
  CommandLine(const Arguments& arguments, const Options& options) : arguments_(arguments), options_(options) {}

  Arguments plain() {
    while (at_ < arguments_.size()) {
      const auto argument = arguments_[at_++];
      const bool is_option = argument.size() > 1 && argument.starts_with('-') && argument != "--";
      if (is_option) {
        take_option(argument);
      } else if (argument == "--" || options_.ends_at_text) {
        take_rest(argument);
      } else {
        plain_.push_back(argument);
      }
    }
    return std::move(plain_);
  }

 private:
  const po::option_description* find(const std::string& name) const {
    return options_.named.find_nothrow(name, /*approx=*/false);
  }

  void take_rest(const std::string& first) {
    plain_.emplace_back("--");
    if (first != "--") plain_.push_back(first);
    for (; at_ < arguments_.size(); ++at_) plain_.push_back(arguments_[at_]);
  }

  void take_option(const std::string& argument) {
    const auto* synonym = options_.has_settings ? launching::find_synonym(argument) : nullptr;
    const bool is_long = argument.starts_with("--");
    const auto end = is_long ? argument.find('=') : std::min<std::size_t>(2, argument.size());
    const auto name = argument.substr(0, end);
    const auto value = end < argument.size() ? std::optional(argument.substr(end + (is_long ? 1 : 0))) : std::nullopt;
    if (synonym != nullptr) {
      take_synonym(*synonym, argument);
    } else if (is_long && options_.has_settings && find(name.substr(2)) == nullptr) {
      take_foreign(argument, replaced(name.substr(2), '_', '-'), value);
    } else {
      take_own(is_long ? find(name.substr(2)) : find(name), name, value);
    }
  }

  // The value is attached, so that the parser does not look at it.
  void take_own(const po::option_description* option, const std::string& name, std::optional<std::string> value) {
    const bool has_value = option != nullptr && option->semantic()->max_tokens() > 0;
    const auto* separator = name.starts_with("--") ? "=" : "";
    if (value || !has_value || at_ == arguments_.size()) {
      plain_.push_back(value ? name + separator + *value : name);
      return;
    }
    value = arguments_[at_++];
    if (value->empty()) {  // cannot be attached
      plain_.insert(plain_.end(), {name, ""});
    } else {
      plain_.push_back(name + separator + *value);
    }
  }

  // What follows the spelling in the argument, or the next argument.
  std::string value_of(std::string_view spelling, const std::string& argument) {
    auto value = argument.substr(spelling.size());
    if (!value.empty()) return value.starts_with('=') ? value.substr(1) : value;
    if (at_ < arguments_.size()) return arguments_[at_++];
    throw UsageError({.what = text::concat(spelling, ": the value is missing")});
  }

  void take_synonym(const launching::Synonym& synonym, const std::string& argument) {
    const std::string spelling(synonym.spelling);
    const std::string flag(synonym.key.empty() ? "directive" : launching::find_key(synonym.key, "").flag);
    if (find(flag) == nullptr) {
      throw UsageError({.what = "Unknown option " + text::quote(spelling),
                        .why = synonym.key.empty() ? "only a job passes it on to Slurm" : "it means --" + flag,
                        .hint = "`hortator job` and `hortator launch` have different options; see --help"});
    }
    if (synonym.key.empty()) {
      const bool has_value = synonym.directive.ends_with('=');
      const bool has_text = argument.size() > spelling.size();
      const auto value = has_value  ? value_of(spelling, argument)
                         : has_text ? argument.substr(spelling.size())
                                    : std::string();
      plain_.push_back(text::concat("--directive=", synonym.directive, value));
      return;
    }
    const auto value = value_of(spelling, argument);
    if (!options_.own_flags.contains(flag))
      launching::check_values(launching::find_key(synonym.key, ""), {value}, spelling + ": ");
    plain_.push_back("--" + flag + "=" + value);
  }

  // An option with _ in place of -, or one of Accelerate.
  void take_foreign(const std::string& argument, const std::string& dashed, const std::optional<std::string>& value) {
    if (const auto* option = find(dashed)) return take_own(option, "--" + dashed, value);
    const auto* row = launching::accelerate_flag(replaced(dashed, '-', '_'));
    if (row == nullptr) {
      plain_.push_back(argument);  // unknown
    } else if (row->support == Support::refused) {
      throw UsageError({.what = argument.substr(0, argument.find('=')) + " of Accelerate is not supported",
                        .why = std::string(row->text)});
    } else if (row->support == Support::noted) {
      if (!value && !launching::is_accelerate_switch(row->name) && at_ < arguments_.size()) ++at_;
      std::cerr << "hortator: " << argument.substr(0, argument.find('=')) << " has no effect: " << row->text << "\n";
    } else {
      take_accelerate(*row, argument, value);
    }
  }

  void take_accelerate(const launching::AccelerateName& row, const std::string& argument,
                       std::optional<std::string> value) {
    const auto& key = launching::find_key(row.key, "");
    const std::string flag(key.flag);
    if (find(flag) == nullptr || key.kind == launching::KeyKind::onoff) {
      plain_.push_back(find(flag) == nullptr ? argument : "--" + flag);
      return;
    }
    const auto spelling = argument.substr(0, argument.find('='));
    if (!value) value = value_of(spelling, argument);
    const auto translated = launching::value_from_accelerate(row, *value);
    if (!translated) {
      throw UsageError({.what = text::concat(spelling, ": ", text::quote(*value), " is not supported"),
                        .why = std::string(row.text)});
    }
    plain_.push_back("--" + flag + "=" + *translated);
  }

  const Arguments& arguments_;
  const Options& options_;
  std::size_t at_ = 0;
  Arguments plain_;
};

}  // namespace

Arguments plain_arguments(const Arguments& arguments, const Options& options) {
  return CommandLine(arguments, options).plain();
}

std::string synonym_help(const Options& options) {
  if (!options.has_settings) return "";
  std::vector<std::pair<std::string, Arguments>> lines;
  const auto add = [&](const std::string& meaning, std::string_view spelling) {
    auto line = std::find_if(lines.begin(), lines.end(), [&](const auto& known) { return known.first == meaning; });
    if (line == lines.end()) line = lines.insert(lines.end(), {meaning, {}});
    line->second.emplace_back(spelling);
  };
  for (const auto& synonym : launching::synonyms()) {
    const std::string flag(synonym.key.empty() ? "directive" : launching::find_key(synonym.key, "").flag);
    if (options.named.find_nothrow(flag, false) == nullptr) continue;
    add(synonym.key.empty()
            ? text::concat("passed on to Slurm as ", text::split(std::string(synonym.directive), '=')[0])
            : "--" + flag,
        synonym.spelling);
  }
  std::ostringstream out;
  out << "\nSpellings of Slurm and mpirun, and what they mean here; flags of `accelerate launch` are accepted, too:\n";
  for (const auto& [meaning, spellings] : lines)
    out << "  " << std::left << std::setw(54) << text::join(spellings) << meaning << '\n';
  return std::move(out).str();
}

}  // namespace hortator::tools
