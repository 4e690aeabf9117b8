#include "tools/command_line/options.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "tools/command_line/command_line.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

// How an option that Hortator does not know reaches the launcher or the scheduler; empty for a verb without them.
std::string passing_on(const Options& options) {
  const auto* name = options.is_launch ? "launcher-option" : "directive";
  const auto* setting = options.is_launch ? "launcher-options" : "directives";
  if (!options.has_settings || options.named.find_nothrow(setting, false) == nullptr) return "";
  return text::concat("; --", name, "='...' passes an option on unchanged");
}

// A long list of names does not help: point to --help instead.
std::string short_suggestion(const std::string& name, const Options& options) {
  const auto known = known_spellings(options);
  const bool is_long = known.size() > 12 && text::nearest(name, known).empty();
  return is_long ? "--help lists all options" + passing_on(options) : text::suggestion(name, known);
}

UsageError unknown(const po::unknown_option& error, const Options& options) {
  const auto token = error.get_option_name();
  const auto name = token.substr(0, token.find('='));
  return UsageError({.what = "Unknown option " + text::quote(name), .hint = short_suggestion(name, options)});
}

// The first argument that exceeds the verb's texts. Values of options are attached to them.
std::string surplus(const Arguments& arguments, const Options& options) {
  auto count = options.positional.max_total_count();
  for (const auto& argument : plain_arguments(arguments, options)) {
    if (!argument.starts_with('-') && count-- == 0) return argument;
  }
  return "";
}

UsageError too_many(const Arguments& arguments, const Options& options) {
  const auto extra = surplus(arguments, options);
  const auto hint = hint_for_dashes(extra, options);
  return UsageError(
      {.what = "Unexpected argument " + text::quote(extra), .hint = hint.empty() ? "--help shows the usage" : hint});
}

UsageError syntax_error(const po::invalid_syntax& error) {
  const bool is_missing = error.kind() == po::invalid_syntax::missing_parameter;
  return UsageError({.what = error.get_option_name() + (is_missing ? ": the value is missing" : " has no value"),
                     .hint = "--help lists all options"});
}

po::parsed_options split(const Arguments& arguments, const Options& options) {
  po::command_line_parser parser(plain_arguments(arguments, options));
  // Abbreviated options are refused: their meaning would change with each new option.
  const auto style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  parser.options(options.named).positional(options.positional).style(style);
  return parser.run();
}

}  // namespace

Options with_text(Options options, const char* name) {
  options.named.add_options()(name, boost::program_options::value<std::vector<std::string>>());
  options.positional.add(name, -1);
  return options;
}

std::string hint_for_dashes(const std::string& text, const Options& options) {
  return options.named.find_nothrow(text, false) != nullptr ? "did you mean '--" + text + "'?" : "";
}

po::variables_map parse(const Arguments& arguments, const Options& options) {
  try {
    po::variables_map values;
    po::store(split(arguments, options), values);
    po::notify(values);
    return values;
  } catch (const po::unknown_option& error) {
    throw unknown(error, options);
  } catch (const po::too_many_positional_options_error&) {
    throw too_many(arguments, options);
  } catch (const po::multiple_occurrences& error) {
    throw UsageError({.what = error.get_option_name() + ": given more than once", .hint = "give it once"});
  } catch (const po::invalid_syntax& error) {
    throw syntax_error(error);
  } catch (const po::error& error) {
    throw UsageError({.what = error.what()});
  }
}

}  // namespace hortator::tools
