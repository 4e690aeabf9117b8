#include "tools/options.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/settings/accelerate_names.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

std::vector<std::string> names(const po::options_description& options) {
  std::vector<std::string> known;
  for (const auto& option : options.options()) known.push_back("--" + option->long_name());
  return known;
}

// A list that fills the screen helps nobody.
std::string short_suggestion(const std::string& name, const std::vector<std::string>& known) {
  const bool is_long = known.size() > 12 && text::nearest(name, known).empty();
  return is_long ? "--help lists what there is" : text::suggestion(name, known);
}

// A style parser takes what it knows from the front: here, nothing or everything.
std::vector<po::option> take_rest(std::vector<std::string>& words) {
  std::vector<po::option> rest;
  if (words.empty() || words.front().starts_with('-')) return rest;
  for (const auto& word : words) rest.emplace_back("", std::vector<std::string>{word}).original_tokens = {word};
  words.clear();
  return rest;
}

po::parsed_options split(const Arguments& arguments, const Options& options) {
  po::command_line_parser parser(arguments);
  // Half a name is not an option: what it means would change with each new one.
  const auto style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  parser.options(options.named).positional(options.positional).style(style);
  if (options.rest_is_foreign) parser.extra_style_parser(take_rest);
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
    const auto known = names(options.named);
    auto hint = text::nearest(name, known).empty() ? launching::hint_for_flag(name) : "";
    if (hint.empty()) hint = short_suggestion(name, known);
    throw UsageError({.what = "there is no option " + text::quote(name), .hint = hint});
  } catch (const po::error& error) {
    throw UsageError({.what = error.what()});
  }
}

}  // namespace hortator::tools
