#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/compare/aligned_calls.hpp"
#include "tools/compare/tensor_verdict.hpp"

/// What differs between the recorded steps of two runs.
namespace hortator::tools {

/// An operator whose results differ.
struct CallDifference {
  AlignedCall call;
  TensorVerdict verdict = TensorVerdict::equal;  ///< the worst of its results
  std::size_t result = 0;                        ///< the first that has this verdict
  const observe::TensorRecord* a = nullptr;      ///< of the first rank on which it has
  const observe::TensorRecord* b = nullptr;
  std::vector<int> ranks = {};  ///< on which results differ; empty: the ranks have other parts in the other run
  bool is_on_all = false;       ///< on all ranks that have called it
  std::optional<std::size_t> input = {};  ///< the first whose bits differ, where ranks have the same parts
  bool compares_inputs = false;
};

struct RunComparison {
  Alignment alignment = {};
  std::vector<CallDifference> differences = {};  ///< in the first run's order

  /// The first of at least this verdict; null: none.
  const CallDifference* first(TensorVerdict at_least) const;
};

RunComparison compare(const RunRecord& a, const RunRecord& b, double units);

/// The records of all ranks. Throws UsageError if there are none, or some are missing.
RunRecord read_run_record(const std::filesystem::path& folder);

}  // namespace hortator::tools
