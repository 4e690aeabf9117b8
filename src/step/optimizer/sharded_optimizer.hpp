#pragma once

#include <torch/optim/optimizer.h>

#include <optional>
#include <vector>

#include "mpi/communicator.hpp"
#include "parallel/zero/flat_parameters.hpp"
#include "step/optimizer/moments_on_disk.hpp"
#include "step/optimizer/optimizer_state.hpp"

namespace hortator::step {

/// Has the user's optimizer step slices in place of whole parameters: each rank its own, with moments for these alone.
/// Groups keep their options, and the slices their parameters' places in them, so that an optimizer remembers as much
/// on all ranks. Parameters that are in no prepared model stay as they are.
class ShardedOptimizer {
 public:
  /// `optimizer` is borrowed. Throws, naming its type, where steps by slices would not be the same as by parameters.
  /// `gradients_are_whole`: the parameters have them, not the slices.
  /// `moments`: where they are between steps; elsewhere only those of optimizers with known ones. `host`: all who step.
  ShardedOptimizer(torch::optim::Optimizer& optimizer, bool gradients_are_whole,
                   const parallel::ArrayPlacement& moments, const mpi::Communicator& host);

  /// Takes over its parameters that are these; what it remembers of them is cut.
  void take_over(parallel::FlatParameters& parameters);
  /// Parameters that came into the groups since then. Before anything that goes through the groups.
  void take_over_new_ones();

  /// All ranks are here, and slices have their gradients. @collective
  void before_step();
  /// All ranks get the new parameters. @collective
  void after_step();

  /// Its parameters as the user gave them, in the order of the groups.
  std::vector<at::Tensor> parameters() const;
  struct Part {
    at::Tensor parameter = {};
    at::Tensor slice = {};  ///< the parameter itself where it is not sharded
    parallel::FlatParameters* flat = nullptr;
    std::size_t number = 0;  ///< in `flat`
  };
  const std::vector<std::vector<Part>>& groups() const { return groups_; }

  /// The optimizer has its own parameters again, and what it remembers as a whole. One that is no more is left alone.
  /// @collective
  void give_back();
  /// The same without what it remembers, which it forgets.
  void give_back_parameters();

 private:
  bool is_alive() const;
  std::vector<MomentsOnDisk::Owner> owners_of_moments() const;
  void cut_state(const Part& part);
  void join_state(const Part& part);
  std::vector<std::size_t> flats_of(const parallel::FlatParameters& parameters) const;

  torch::optim::Optimizer* optimizer_;
  bool gradients_are_whole_;
  const mpi::Communicator& host_;
  std::vector<parallel::FlatParameters*> models_;
  std::vector<std::vector<Part>> groups_;
  std::optional<MomentsOnDisk> on_disk_;  ///< nothing: they are in memory
};

/// Throws unless stepping a part of each parameter is the same as a part of the step.
void require_elementwise(const torch::optim::Optimizer& optimizer);

}  // namespace hortator::step
