#pragma once

#include <functional>
#include <set>
#include <string>

#include "accelerator/prepared/checkpoint_part.hpp"

namespace hortator::simulation {

/// Lets a run continue from a checkpoint that does not have all kept arrays and buffers.
class PartialResume {
 public:
  /// Restores a checkpoint by `load`, during which parts may be missing. Returns the names of those that were.
  std::set<std::string> run(const std::function<void()>& load);
  /// A part that then keeps what it holds. This object must outlive it.
  accelerator::CheckpointPart optional(std::string name, accelerator::CheckpointPart part);

 private:
  bool is_allowed_ = false;
  std::set<std::string> left_out_ = {};
};

}  // namespace hortator::simulation
