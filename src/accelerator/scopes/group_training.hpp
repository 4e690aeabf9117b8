#pragma once

#include <string>

#include "parallel/data_parallel/common_pass.hpp"
#include "parallel/data_parallel/data_parallel.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "step/model/model_core.hpp"

namespace hortator::accelerator {

class Training;

/// While it lives, the ranks along shard train a model without the other groups: their gradients, buffers and steps
/// reach no other rank.
class GroupTraining {
 public:
  /// `group`: the ranks along shard; it must outlive this. @collective
  GroupTraining(Training& training, step::ModelCore& model, const parallel::RankGroup& group);
  /// The next pass is one of all ranks. Local.
  ~GroupTraining();

  parallel::CommonPass& pass() { return pass_; }

 private:
  parallel::DataParallel binding(const std::string& name);

  Training& training_;
  step::ModelCore& model_;
  const parallel::RankGroup& group_;
  parallel::CommonPass pass_;
  const parallel::DataParallel binding_;
  const parallel::DataParallel of_ignored_;
};

}  // namespace hortator::accelerator
