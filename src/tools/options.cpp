#include "tools/options.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "tools/command_line.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

// A long list of names is no help: point to --help instead.
std::string short_suggestion(const std::string& name, const std::vector<std::string>& known) {
  const bool is_long = known.size() > 12 && text::nearest(name, known).empty();
  return is_long ? "--help lists all options" : text::suggestion(name, known);
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

po::variables_map parse(const Arguments& arguments, const Options& options) {
  try {
    po::variables_map values;
    po::store(split(arguments, options), values);
    po::notify(values);
    return values;
  } catch (const po::unknown_option& error) {
    const auto name = error.get_option_name();
    throw UsageError(
        {.what = "Unknown option " + text::quote(name), .hint = short_suggestion(name, known_spellings(options))});
  } catch (const po::error& error) {
    throw UsageError({.what = error.what()});
  }
}

}  // namespace hortator::tools
