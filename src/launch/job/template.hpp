#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::launching {

/// What fills a template.
struct Filling {
  std::map<std::string, std::string> words = {};               ///< @name@ within a line
  std::map<std::string, std::vector<std::string>> lines = {};  ///< "#@ name": lines in its place; the same for a line
                                                               ///< "#SBATCH @name@", each with that beginning
};

/// The template's text, filled. Nothing that was filled in is looked into again. Error for a name that nobody fills.
std::string fill(std::string_view text, const Filling& filling);

}  // namespace hortator::launching
