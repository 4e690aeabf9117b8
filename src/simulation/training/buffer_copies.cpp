#include "simulation/training/buffer_copies.hpp"

#include <c10/core/GradMode.h>

#include <exception>

#include "core/log.hpp"

namespace hortator::simulation {

void BufferCopies::copy(const torch::nn::Module& module) {
  copies_.clear();
  for (const auto& buffer : module.buffers()) {
    if (buffer.defined()) copies_.emplace_back(buffer, buffer.detach().clone());
  }
}

// Only a device that has failed can fail here, which the step reports.
void BufferCopies::put_back() noexcept {
  try {
    const at::NoGradGuard no_grad;
    for (const auto& [buffer, copy] : copies_) at::Tensor(buffer).copy_(copy);
  } catch (const std::exception& error) {
    log::warn("the buffers of a model could not be put back: ", error.what());
  }
  copies_.clear();
}

}  // namespace hortator::simulation
