#include "train/replicate.hpp"

#include <c10/core/GradMode.h>

#include "base/text.hpp"
#include "comm/operands.hpp"
#include "mpi/agree.hpp"

namespace hortator::train {
namespace {

std::string describe_all(const torch::nn::Module& module) {
  std::string lines;
  for (const auto& item : module.named_parameters()) {
    lines += text::concat(item.key(), " ", comm::describe(item.value()), item.value().requires_grad() ? "" : " frozen",
                          "; ");
  }
  for (const auto& item : module.named_buffers())
    lines += text::concat(item.key(), " ", comm::describe(item.value()), "; ");
  return lines;
}

}  // namespace

void replicate(torch::nn::Module& module, comm::Communicator& communicator, const mpi::Communicator& host) {
  mpi::same_on_all(host, describe_all(module), "the model");
  broadcast_parameters(module, communicator, 0);
  const at::NoGradGuard no_grad;
  communicator.broadcast_all(module.buffers(), 0).wait();
}

void broadcast_parameters(const torch::nn::Module& module, comm::Communicator& communicator, int root) {
  const at::NoGradGuard no_grad;
  communicator.broadcast_all(module.parameters(), root).wait();
}

}  // namespace hortator::train
