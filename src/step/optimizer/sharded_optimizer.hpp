#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "mpi/communicator.hpp"
#include "parallel/zero/sharded_model.hpp"
#include "step/moments/moments_on_disk.hpp"
#include "step/moments/optimizer_state.hpp"

namespace hortator {
class ParameterSlices;
}

namespace hortator::step {

/// Makes the user's optimizer step this rank's slices instead of whole parameters, so that a rank has moments for its
/// slices only. Groups keep their options, and a slice has its parameter's position in the group, so that the state has
/// the same structure on all ranks. Parameters that belong to no prepared model stay as they are.
class ShardedOptimizer {
 public:
  /// `optimizer` is borrowed. Throws, naming its type, if stepping slices would not equal stepping parameters.
  /// `gradients_are_whole`: whether the parameters have the gradients, not the slices.
  /// `moments`: where moments are stored between steps; on disk for AdamW and Adam only. `host`: the ranks that step.
  ShardedOptimizer(torch::optim::Optimizer& optimizer, bool gradients_are_whole,
                   const parallel::ArrayPlacement& moments, const mpi::Communicator& host);

  /// From now on these ranks step together. Local.
  void step_among(const mpi::Communicator& host) { host_ = &host; }
  /// Replaces those of the optimizer's parameters that are in `parameters` by slices, and its state of them too.
  void take_over(const parallel::ShardedModel& model);
  void take_over(parallel::FlatParameters& parameters);
  /// The same for parameters that were added to the groups since. Call it before any walk over the groups.
  void take_over_new_ones();

  /// Waits for all ranks, and gives slices their gradients. With a flag, returns whether any rank has raised it.
  /// @collective
  bool before_step(std::optional<bool> flag = {});
  using Abandon = std::function<void(std::string_view reason)>;
  /// Runs the optimizer's step, which may throw on one rank: the others then throw as well, in place of waiting for its
  /// part. `abandon` ends this rank's part in all collectives.
  void run_together(const std::function<void()>& step, const Abandon& abandon) const;
  /// Ends a step that was not done. Local.
  void leave_step();
  /// Gives all ranks the new parameters. @collective
  void after_step();

  /// The user's parameters, in the order of the groups.
  std::vector<at::Tensor> parameters() const;
  struct ShardedParameter {
    at::Tensor parameter = {};
    at::Tensor slice = {};  ///< the parameter itself where it is not sharded
    parallel::FlatParameters* flat = nullptr;
    std::size_t number = 0;  ///< in `flat`
  };
  const std::vector<std::vector<ShardedParameter>>& groups() const { return groups_; }

  /// Puts whole parameters and whole state back into the optimizer. Does not touch an optimizer that was destroyed.
  /// @collective
  void give_back();
  /// Puts whole parameters back, and drops the optimizer's state of them. Local.
  void give_back_parameters();

 private:
  bool is_alive() const;
  void lend_slices();
  void cut_gradients();
  std::vector<MomentsOnDisk::Owner> owners_of_moments() const;
  void cut_state(const ShardedParameter& sharded);
  void join_state(const ShardedParameter& sharded);
  static at::Tensor join_blocks(const ShardedParameter& sharded, const at::Tensor& mine);
  std::vector<std::size_t> flats_of(const parallel::FlatParameters& parameters) const;
  parallel::FlatParameters& of_most_ranks() const;

  torch::optim::Optimizer* optimizer_;
  bool gradients_are_whole_;
  const mpi::Communicator* host_;
  std::vector<parallel::FlatParameters*> models_;  ///< those that have some of the optimizer's parameters
  std::vector<std::vector<ShardedParameter>> groups_;
  std::shared_ptr<const ParameterSlices> slices_;  ///< null unless the optimizer is a SlicedOptimizer
  std::optional<MomentsOnDisk> on_disk_;           ///< nothing if they are in memory
};

/// Throws unless the optimizer's step of slices is the slices of its step: it works element by element, or knows what
/// slices it has.
void require_shardable(const torch::optim::Optimizer& optimizer);
/// Whether its step is known to look at each element only.
bool is_elementwise(const torch::optim::Optimizer& optimizer);

}  // namespace hortator::step
