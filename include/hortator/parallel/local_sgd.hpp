#pragma once

#include <cstdint>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <memory>

namespace hortator {

class Accelerator;
namespace accelerator {
class LocalSteps;
}

/// Of LocalSGD.
struct LocalSGDOptions {
  std::int64_t steps = 8;  ///< parameters are averaged after every so many calls of step()
  bool enabled = true;     ///< false: nothing happens, as with one rank
};

/// Local SGD: `hortator::LocalSGD local_sgd(accelerator, model, {.steps = 8});` As long as it lives, gradients of
/// `model` stay on their rank and each rank's optimizer takes its own steps. Call step() after each of them: every
/// options.steps calls, and at the end of the scope, the ranks' parameters are averaged, a few large collectives for
/// all of them, and are the same on all ranks, bit for bit; buffers become rank 0's (unless ddp.broadcast_buffers is
/// off). What optimizers remember stays each rank's own.
///
/// Ranks may take different numbers of steps: one that is done takes part in the others' averages with the parameters
/// that it has, at the scope's end, until all are done. When an exception ends the scope, nothing is averaged.
class HORTATOR_API LocalSGD {
 public:
  LocalSGD(Accelerator& accelerator, const ModelBase& model, const LocalSGDOptions& options = {});
  /// Waits for the others and averages, unless an exception is on its way out. Throws what goes wrong. @collective
  ~LocalSGD() noexcept(false);
  LocalSGD(const LocalSGD&) = delete;
  LocalSGD& operator=(const LocalSGD&) = delete;

  /// @collective every options.steps calls
  void step();

 private:
  std::unique_ptr<accelerator::LocalSteps> steps_;  ///< null where nothing is to be done
};

}  // namespace hortator
