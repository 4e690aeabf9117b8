#pragma once

#include <string>

#include "tools/compare/run_comparison.hpp"

namespace hortator::tools {

struct ComparedRuns {
  std::string name_a;
  std::string name_b;
  const RunRecord& a;
  const RunRecord& b;
  const RunComparison& comparison;
};

/// For people. `listed`: how many differences are listed below the first.
std::string comparison_view(const ComparedRuns& runs, std::size_t listed);

/// For programs: the same, with all differences.
std::string comparison_json(const ComparedRuns& runs);

}  // namespace hortator::tools
