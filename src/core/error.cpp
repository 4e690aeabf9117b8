#include <hortator/error.hpp>

namespace hortator {

std::string to_string(const Problem& problem) {
  std::string text = problem.what;
  if (!problem.why.empty()) text += " (" + problem.why + ")";
  if (!problem.hint.empty()) text += "; " + problem.hint;
  return text;
}

Error::Error(const Problem& problem, std::source_location where)
    : std::runtime_error(to_string(problem)), where_(where) {}

Error& Error::on_rank(int rank) noexcept {
  rank_ = rank;
  return *this;
}

}  // namespace hortator
