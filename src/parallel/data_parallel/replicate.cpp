#include "parallel/data_parallel/replicate.hpp"

#include <c10/core/GradMode.h>

#include <span>
#include <utility>
#include <vector>

#include "comm/operands.hpp"
#include "core/text/text.hpp"
#include "interception/claimed_operators.hpp"
#include "interception/claims.hpp"
#include "mpi/agree.hpp"
#include "paging/deferred/recording.hpp"
#include "parallel/batch_norm/shared_statistics.hpp"

namespace hortator::parallel {
namespace {

std::string describe_all(const torch::nn::Module& module) {
  std::string lines;
  for (const auto& item : module.named_parameters()) {
    lines += text::concat(item.key(), " ", comm::describe(item.value()), item.value().requires_grad() ? "" : " frozen",
                          paging::awaits_construction(item.value()) ? " deferred; " : "; ");
  }
  for (const auto& item : module.named_buffers())
    lines += text::concat(item.key(), " ", comm::describe(item.value()), "; ");
  for (const auto& item : module.named_modules("", /*include_self=*/false))
    if (is_synchronized_norm(*item.value())) lines += item.key() + " synchronised; ";
  return lines + (is_synchronized_norm(module) ? "synchronised" : "");
}

}  // namespace

void replicate(torch::nn::Module& module, comm::Communicator& communicator, const mpi::Communicator& host,
               std::optional<c10::Device> device) {
  mpi::same_on_all(host, describe_all(module), "the model");
  broadcast_parameters(module, communicator, 0, device);
  const at::NoGradGuard no_grad;
  communicator.broadcast_all(module.buffers(), 0).wait();
}

void broadcast_parameters(const torch::nn::Module& module, comm::Communicator& communicator, int root,
                          std::optional<c10::Device> device) {
  if (communicator.size() == 1) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> present;
  std::vector<at::Tensor> paged;
  std::vector<at::Tensor> elsewhere;
  for (const auto& parameter : module.parameters()) {
    if (paging::awaits_construction(parameter)) continue;
    const bool is_elsewhere = device && parameter.device() != *device;
    (is_elsewhere ? elsewhere : interception::claim_of(parameter) ? paged : present).push_back(parameter);
  }
  communicator.broadcast_all(std::move(present), root).wait();
  for (const auto& parameter : elsewhere) broadcast_through(*device, parameter, communicator, root);
  for (const auto& parameter : paged) {  // one in memory at a time
    const interception::Hold hold(std::span(&parameter, 1), interception::Access::write);
    communicator.broadcast(parameter, root).wait();
  }
}

void broadcast_through(c10::Device device, const at::Tensor& tensor, comm::Communicator& communicator, int root) {
  const at::NoGradGuard no_grad;
  const auto there = tensor.detach().to(device);
  communicator.broadcast(there, root).wait();
  if (tensor.device() != device) tensor.detach().copy_(there);
}

}  // namespace hortator::parallel
