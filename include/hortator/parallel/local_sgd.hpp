#pragma once

#include <cstdint>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <memory>

namespace hortator {

class Accelerator;
class OuterOptimizer;
namespace accelerator {
class LocalSteps;
}

/// Options of LocalSGD.
struct LocalSGDOptions {
  std::int64_t steps = 8;  ///< number of calls of step() after which parameters are averaged
  bool enabled = true;     ///< false: does nothing, as on one rank
  /// What steps from the mean of the ranks' differences; null: ranks continue with the mean of their weights. Must
  /// outlive the scope, and be of the same model.
  OuterOptimizer* outer = nullptr;
};

/// Local SGD: `hortator::LocalSGD local_sgd(accelerator, model, {.steps = 8});` While it lives, gradients of `model`
/// stay on their rank and each rank's optimizer takes its own steps. Call step() after each of them: every
/// options.steps calls, and at the end of the scope, the ranks' parameters are averaged in a few large collectives, and
/// are then bitwise the same on all ranks; all ranks get rank 0's buffers (unless ddp.broadcast_buffers is off).
/// Optimizers' states are not averaged. Replicas differ in between: then save_state() and save_model() throw, and
/// should_stop() and save_state_every() wait. Directly after a step() that has averaged, all of these do their work.
/// Ranks may take different numbers of steps: at the end of its scope, a rank takes part in the others' averages with
/// the parameters that it has, until all are done. Then all ranks get the optimizers, schedules and the rest that
/// JoinUnevenInputs names from the rank that has taken the most steps. If an exception ends the scope, nothing is
/// averaged. With fp16 each rank has a scale of its own within the scope. With ZeRO and parallel.replicate = N, each of
/// N groups of ranks trains in the place of a rank: its ranks take the same steps, and each averages its slices. Throws
/// UsageError within another such scope, within join_uneven_inputs, with an optimizer that saves nothing, under ZeRO
/// with one group, and with ranks along other axes.
class HORTATOR_API LocalSGD {
 public:
  LocalSGD(Accelerator& accelerator, const ModelBase& model, const LocalSGDOptions& options = {});
  /// Waits for the other ranks and averages, unless an exception ends the scope. May throw. @collective
  ~LocalSGD() noexcept(false);
  LocalSGD(const LocalSGD&) = delete;
  LocalSGD& operator=(const LocalSGD&) = delete;

  /// @collective every options.steps calls
  void step();

 private:
  std::unique_ptr<accelerator::LocalSteps> steps_;  ///< null if it does nothing
};

}  // namespace hortator
