#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <string>

#include "machine/races/operator_memory.hpp"

namespace hortator::sim {

/// What has to be known of an operator to run it later.
struct OperatorFacts {
  std::string name = {};
  machine::OperatorMemory memory = {};
  bool makes_tensors = false;
  bool has_outputs = false;  ///< arguments `out`
  bool is_random = false;
  int generator = -1;                 ///< the argument's number
  std::atomic<bool> waits = false;    ///< what it returns depends on data: the host has to wait
  bool waits_for_masks = false;       ///< the same, if an argument is a mask, which selects by data
  std::atomic<bool> no_meta = false;  ///< no kernel tells its shapes: a dry run does
};

/// Lives as long as the process.
OperatorFacts& facts_of(const c10::OperatorHandle& op);

}  // namespace hortator::sim
