#pragma once

#include <map>
#include <string>
#include <vector>

#include "observe/operators/operator_record.hpp"

/// Which operators of two runs are the same call. Pure.
namespace hortator::tools {

using RunRecord = std::vector<observe::StepRecord>;  ///< of all ranks, by rank

/// An operator that ranks of two runs have called.
struct AlignedCall {
  std::string name;  ///< "aten::addmm"
  std::string near;  ///< the module that it belongs to, or follows
  bool is_backward = false;
  int part = -1;
  int number = 1;                                        ///< among the calls of this operator there, from 1
  std::size_t position = 0;                              ///< in the record of the first run's rank
  std::map<int, const observe::OperatorRecord*> a = {};  ///< by rank
  std::map<int, const observe::OperatorRecord*> b = {};

  /// "aten::addmm, call 2 in layers.0.fc1 (backward)"
  std::string text() const;
};

struct Alignment {
  std::vector<AlignedCall> both = {};    ///< in the first run's order
  std::vector<AlignedCall> only_a = {};  ///< no rank of the second run has called them
  std::vector<AlignedCall> only_b = {};
};

/// Calls are the same if they are of one operator, one module (or both follow it), one part of the batch and one
/// direction, their tensors have the same sizes or may be parts of each other, and they come first among these.
Alignment align(const RunRecord& a, const RunRecord& b);

}  // namespace hortator::tools
