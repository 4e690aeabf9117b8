#include "accelerator/channels/channels.hpp"
#include "accelerator/channels/random_state.hpp"
#include "accelerator/structures/gathering.hpp"
#include "accelerator/structures/padding.hpp"
#include "accelerator/structures/reducing.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"

namespace hortator {

at::Tensor Accelerator::gather(const at::Tensor& tensor) {
  const CallSite site(__builtin_return_address(0));
  return accelerator::gather(training_->data(), tensor);
}

void Accelerator::gather_leaves(const std::vector<detail::Leaf>& leaves) {
  const CallSite site(__builtin_return_address(0));
  accelerator::gather(training_->data(), leaves);
}

at::Tensor Accelerator::reduce(const at::Tensor& tensor, Reduce operation, double scale) {
  const CallSite site(__builtin_return_address(0));
  return accelerator::reduce(training_->averaging(), tensor, operation, scale);
}

void Accelerator::reduce_leaves(const std::vector<detail::Leaf>& leaves, Reduce operation, double scale) {
  const CallSite site(__builtin_return_address(0));
  accelerator::reduce(training_->averaging(), leaves, operation, scale);
}

at::Tensor Accelerator::broadcast(at::Tensor tensor, int from_process) {
  const CallSite site(__builtin_return_address(0));
  accelerator::broadcast(training_->channels.mesh().all(), tensor, from_process);
  return tensor;
}

void Accelerator::broadcast_leaves(const std::vector<detail::Leaf>& leaves, int from_process) {
  const CallSite site(__builtin_return_address(0));
  accelerator::broadcast(training_->channels.mesh().all(), leaves, from_process);
}

at::Tensor Accelerator::pad_across_processes(const at::Tensor& tensor, const PadOptions& options) {
  const CallSite site(__builtin_return_address(0));
  return accelerator::pad_across(training_->data().host, tensor, options);
}

void Accelerator::pad_leaves(const std::vector<detail::Leaf>& leaves, const PadOptions& options) {
  const CallSite site(__builtin_return_address(0));
  accelerator::pad_across(training_->data().host, leaves, options);
}

void Accelerator::synchronize_rng_states(const std::vector<at::Generator>& generators) {
  const CallSite site(__builtin_return_address(0));
  accelerator::synchronise(world().comm(), generators.empty() ? accelerator::default_generators(device()) : generators);
}

}  // namespace hortator
