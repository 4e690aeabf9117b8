#include "accelerator/state/free_memory.hpp"

#include "accelerator/prepared/prepared.hpp"
#include "accelerator/state/staged_state.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"

namespace hortator::accelerator {

void free_memory(Training& training) {
  training.control.settle_steps();
  MomentsOfStages of_stages(training);
  training.prepared.give_back_optimizers();
  of_stages.collect(training);
  training.prepared.clear_gradients();
  training.forget();
  of_stages.give_back();
  training.empty_cache();
}

}  // namespace hortator::accelerator
