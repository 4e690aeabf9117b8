#include "tools/command_line/command_line.hpp"

#include <algorithm>

#include "launch/settings/accelerate_names.hpp"
#include "tools/command_line/accelerate_options.hpp"
#include "tools/command_line/argument_reader.hpp"
#include "tools/command_line/parser_arguments.hpp"
#include "tools/command_line/synonym_options.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
using launching::KeyKind;

// The setting of that flag; null if there is none.
const launching::Key* key_of_flag(const std::string& flag) {
  const auto keys = launching::keys();
  const auto key = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return launching::flag_of(k) == flag; });
  return key == keys.end() ? nullptr : &*key;
}

const launching::AccelerateName* accelerate_option(const std::string& name) {
  return launching::accelerate_flag(with_underscores(name));
}

class CommandLine {
 public:
  CommandLine(const Arguments& arguments, const Options& options)
      : options_(options),
        reader_(arguments),
        arguments_(arguments, options),
        synonyms_(reader_, arguments_),
        accelerate_(reader_, arguments_) {}

  Arguments plain() {
    Arguments rest;
    while (rest.empty() && !reader_.is_at_end()) {
      const auto argument = reader_.next();
      const bool is_option = argument.size() > 1 && argument.starts_with('-') && argument != "--";
      if (is_option) {
        take_option(TypedOption::divide(argument));
      } else if (argument == "--" || options_.ends_at_text) {
        rest = read_rest(argument);
      } else {
        arguments_.add(argument);
      }
    }
    accelerate_.finish();
    for (auto& argument : rest) arguments_.add(std::move(argument));
    return std::move(arguments_).take();
  }

 private:
  Arguments read_rest(const std::string& first) {
    Arguments rest = {"--"};
    if (first != "--") rest.push_back(first);
    while (!reader_.is_at_end()) rest.push_back(reader_.next());
    return rest;
  }

  void take_option(const TypedOption& option) {
    if (!option.argument.starts_with("--")) return take_short(option);
    const auto name = option.name();
    if (const auto* synonym = long_synonym(name)) return synonyms_.take(*synonym, option);
    if (const auto* known = arguments_.find(name)) return take_known(*known, name, option);
    take_foreign(name, option);
  }

  void take_short(const TypedOption& option) {
    const auto* synonym = options_.has_settings ? synonyms_.find_short(option.argument) : nullptr;
    if (synonym == nullptr) return take_own(arguments_.find(option.spelling), option.spelling, option.value);
    TypedOption known{option.argument, std::string(synonym->spelling), {}};
    auto attached = option.argument.substr(synonym->spelling.size());
    if (attached.starts_with('=')) attached.erase(0, 1);
    if (!attached.empty()) known.value = attached;
    synonyms_.take(*synonym, known);
  }

  // If a scheduler and Accelerate share a name, Accelerate's meaning counts where the verb does not have the other.
  const launching::Synonym* long_synonym(const std::string& name) const {
    if (!options_.has_settings || options_.own_flags.contains(name)) return nullptr;
    const auto* synonym = launching::find_synonym("--" + name, launching::Dialect::any);
    const bool is_taken = synonym != nullptr && (synonyms_.is_known(*synonym) || accelerate_option(name) == nullptr);
    return is_taken ? synonym : nullptr;
  }

  void take_known(const po::option_description& known, const std::string& name, const TypedOption& option) {
    const auto* key = options_.has_settings && !options_.own_flags.contains(name) ? key_of_flag(name) : nullptr;
    if (key == nullptr || key->kind == KeyKind::onoff) return take_own(&known, "--" + name, option.value);
    const auto value = reader_.value_of(option);
    launching::check_values(*key, {value}, option.spelling + ": ");
    arguments_.put(*key, value, option.spelling);
    if (key->name == "zero_stage") accelerate_.note_stage(value, option.spelling);
  }

  // The value is attached, so that the parser does not look at it.
  void take_own(const po::option_description* known, const std::string& name, std::optional<std::string> value) {
    const bool has_value = known != nullptr && known->semantic()->max_tokens() > 0;
    if (!value && !has_value) return arguments_.add_switch(name);
    if (!value && reader_.is_at_end()) return arguments_.add(name);
    const bool is_attached = value.has_value();
    if (!is_attached) value = reader_.next();
    if (!is_attached && value->empty()) {  // cannot be attached
      arguments_.add(name);
      return arguments_.add("");
    }
    arguments_.add(name + (name.starts_with("--") ? "=" : "") + *value);
  }

  // An option of Accelerate, a setting that this verb does not have, or an unknown option.
  void take_foreign(const std::string& name, const TypedOption& option) {
    if (!options_.has_settings) return arguments_.add(option.argument);
    if (const auto* row = accelerate_option(name)) return accelerate_.take(*row, option);
    const auto* key = key_of_flag(name);
    if (key == nullptr || options_.own_flags.contains(name)) return arguments_.add(option.argument);
    arguments_.add_at_launch("", key->kind == KeyKind::onoff ? "" : reader_.value_of(option), option.spelling);
  }

  const Options& options_;
  ArgumentReader reader_;
  ParserArguments arguments_;
  SynonymOptions synonyms_;
  AccelerateOptions accelerate_;
};

}  // namespace

Arguments plain_arguments(const Arguments& arguments, const Options& options) {
  return CommandLine(arguments, options).plain();
}

}  // namespace hortator::tools
