#pragma once

#include <cstdint>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <memory>
#include <optional>
#include <string>

namespace hortator {

class Accelerator;
namespace accelerator {
class OuterStep;
}

/// How the ranks' differences travel between nodes. The ranks of a node add theirs up whole.
enum class OuterWire {
  whole,  ///< in fp32
  int8,   ///< in blocks of 64 numbers of 8 bits with one scale: a quarter of the bytes
  /// The largest 64 of each 4096 numbers in 2 bits, and where they are: less than a hundredth of the bytes. What is not
  /// sent stays on its node and is sent later, which takes the place of momentum.
  sparse,
};

/// Options of OuterOptimizer.
struct OuterOptimizerOptions {
  std::optional<double> learning_rate = {};  ///< default: 0.7, with OuterWire::sparse 1
  double momentum = 0.9;                     ///< Nesterov's; without effect with OuterWire::sparse
  OuterWire wire = OuterWire::whole;
  double keep = 0.95;          ///< with OuterWire::sparse: the part of what was not sent that stays until the next step
  std::string name = "outer";  ///< in checkpoints: each OuterOptimizer has its own
};

/// Steps from averages of weights, for ranks that train on their own for tens to hundreds of steps (DiLoCo):
/// `hortator::OuterOptimizer outer(accelerator, model);`, then `hortator::LocalSGD local_sgd(accelerator, model,
/// {.steps = 64, .outer = &outer});`. Where LocalSGD would give all ranks the mean of their weights, the difference to
/// the weights from which they began is the gradient of a step of SGD with Nesterov's momentum. Needs memory for two
/// fp32 copies of the weights, or of this rank's slices with ZeRO. Weights are of fp32, bf16 or fp16. Checkpoints hold
/// the momentum and, with OuterWire::sparse, what was not sent, and continue on any number of ranks (with ZeRO what was
/// not sent only on the same mesh and stage): make it before load_state(). Does nothing on one rank, as LocalSGD.
/// Throws UsageError for options or weights that do not fit. The constructor is @collective.
class HORTATOR_API OuterOptimizer {
 public:
  OuterOptimizer(Accelerator& accelerator, const ModelBase& model, const OuterOptimizerOptions& options = {});

  std::int64_t steps() const;  ///< that were taken

 private:
  friend class LocalSGD;
  std::shared_ptr<accelerator::OuterStep> step_;
};

}  // namespace hortator
