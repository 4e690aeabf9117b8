#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::launching {

/// The values for a template.
struct TemplateValues {
  std::map<std::string, std::string> texts = {};               ///< @name@ within a line
  std::map<std::string, std::vector<std::string>> lines = {};  ///< for "#@ name": replaced by these lines; for
                                                               ///< "#SBATCH @name@": each with that prefix
};

/// Fills the template. Inserted text is not scanned again. Throws Error for an unknown name.
std::string fill(std::string_view text, const TemplateValues& values);

}  // namespace hortator::launching
