#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

namespace hortator::tools {

using Arguments = std::vector<std::string>;

/// What a verb understands.
struct Options {
  boost::program_options::options_description named = {};
  boost::program_options::positional_options_description positional = {};
  /// Everything from the first word that is no option on belongs to somebody else, options included.
  bool rest_is_foreign = false;
};

/// The same with the words that are no options under `name`: the parser needs one, but no user could give it.
Options with_text(Options options, const char* name);

/// The arguments by their names. UsageError with the nearest known option for one that does not exist.
boost::program_options::variables_map parse(const Arguments& arguments, const Options& options);

}  // namespace hortator::tools
