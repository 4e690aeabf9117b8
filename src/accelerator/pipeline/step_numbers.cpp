#include "accelerator/pipeline/step_numbers.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <utility>

#include "accelerator/channels/random_state.hpp"
#include "core/hash.hpp"
#include "mpi/collectives.hpp"

namespace hortator::accelerator {
namespace {

// @collective over the pipeline
std::uint64_t draw_key(const parallel::StageRanks* stages) {
  auto generator = at::detail::getDefaultCPUGenerator();
  std::uint64_t key = 0;
  {
    const std::lock_guard lock(generator.mutex());
    key = at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
  }
  return stages != nullptr ? mpi::broadcast(stages->ranks.host, key, 0) : key;
}

}  // namespace

StepNumbers::StepNumbers(c10::Device device, const parallel::StageRanks* stages, Keys keys)
    : device_(device), keys_(std::move(keys)) {
  if (!keys_) {
    keys_ = [key = draw_key(stages)](int micro_batch) {
      return core::mix(key, static_cast<std::uint64_t>(micro_batch));
    };
  }
  before_ = random_state(device);
}

StepNumbers::~StepNumbers() { restore_random_state(device_, before_); }

void StepNumbers::seed(int micro_batch, std::int64_t position) const {
  seed_random_state(device_, core::mix(keys_(micro_batch), static_cast<std::uint64_t>(position + 1)));
}

}  // namespace hortator::accelerator
