#include <hortator/training/collectives.hpp>

#include "accelerator/structures/encoded_objects.hpp"
#include "accelerator/structures/gathering.hpp"
#include "accelerator/structures/padding.hpp"
#include "accelerator/structures/reducing.hpp"
#include "comm/backends/make_communicator.hpp"
#include "mpi/agree.hpp"
#include "runtime/world.hpp"

namespace hortator {

/// The state, which keeps the world alive, and the communicators over its ranks.
class Collectives::Connections {
 public:
  explicit Connections(const State& state) : state_(state), on_cpu_(connect(at::kCPU)) {
    if (!state_.device().is_cpu()) on_device_ = connect(state_.device());
  }
  const mpi::Communicator& host() const { return state_.world().comm(); }
  parallel::RankGroup ranks() const {
    return {.on_device = on_device_ ? *on_device_ : *on_cpu_, .on_cpu = *on_cpu_, .host = host()};
  }

 private:
  std::unique_ptr<comm::Communicator> connect(c10::Device device) const {
    return comm::make_communicator(host(), device, comm::checks_from_environment(),
                                   state_.world().collective_timeout());
  }

  State state_;
  std::unique_ptr<comm::Communicator> on_cpu_;
  std::unique_ptr<comm::Communicator> on_device_;  ///< null when the device is the CPU
};

Collectives::Collectives(const State& state) : connections_(std::make_unique<Connections>(state)) {}
Collectives::~Collectives() = default;

at::Tensor Collectives::gather_one(const at::Tensor& tensor) {
  return accelerator::gather(connections_->ranks(), tensor);
}

at::Tensor Collectives::reduce_one(const at::Tensor& tensor, Reduce operation) {
  return accelerator::reduce(connections_->ranks(), tensor, operation);
}

void Collectives::broadcast_one(const at::Tensor& tensor, int from_process) {
  accelerator::broadcast(connections_->ranks(), tensor, from_process);
}

at::Tensor Collectives::pad_one(const at::Tensor& tensor, const PadOptions& options) {
  return accelerator::pad_across(connections_->host(), tensor, options);
}

void Collectives::gather_leaves(const std::vector<detail::Leaf>& leaves) {
  accelerator::gather(connections_->ranks(), leaves);
}

void Collectives::reduce_leaves(const std::vector<detail::Leaf>& leaves, Reduce operation) {
  accelerator::reduce(connections_->ranks(), leaves, operation);
}

void Collectives::broadcast_leaves(const std::vector<detail::Leaf>& leaves, int from_process) {
  accelerator::broadcast(connections_->ranks(), leaves, from_process);
}

void Collectives::pad_leaves(const std::vector<detail::Leaf>& leaves, const PadOptions& options) {
  accelerator::pad_across(connections_->host(), leaves, options);
}

std::vector<std::string> Collectives::gather_encoded(const std::function<std::string()>& encode) const {
  return accelerator::gather_encoded(connections_->host(), encode);
}

std::string Collectives::broadcast_encoded(const std::function<std::string()>& encode, int from_process) const {
  return accelerator::broadcast_encoded(connections_->host(), encode, from_process);
}

void Collectives::decode_together(const std::function<void()>& decode) const {
  mpi::all_or_none(connections_->host(), decode);
}

}  // namespace hortator
