#include "checkpoint/read/mismatch.hpp"

#include "core/text/text.hpp"

namespace hortator::checkpoint {

std::vector<std::string> mismatches(const TensorSpecs& expected, const TensorSpecs& found) {
  std::vector<std::string> lines;
  for (const auto& [name, spec] : expected) {
    const auto other = found.find(name);
    if (other == found.end()) {
      lines.push_back(text::concat("missing ", text::quote(name), ", ", formats::to_string(spec)));
    } else if (other->second != spec) {
      lines.push_back(text::concat("unlike ", text::quote(name), ", ", formats::to_string(spec), " here and ",
                                   formats::to_string(other->second), " in the checkpoint"));
    }
  }
  for (const auto& [name, spec] : found) {
    if (!expected.contains(name))
      lines.push_back(text::concat("unexpected ", text::quote(name), ", ", formats::to_string(spec)));
  }
  return lines;
}

}  // namespace hortator::checkpoint
