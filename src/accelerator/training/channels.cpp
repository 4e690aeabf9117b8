#include "accelerator/training/channels.hpp"

#include "comm/make_communicator.hpp"

namespace hortator::accelerator {

void Channels::connect(const ZeroConfig& config) {
  const auto checks = comm::checks_from_environment();
  on_cpu_ = comm::make_communicator(world_.comm(), at::kCPU, checks, world_.collective_timeout());
  if (!device().is_cpu())
    on_device_ = comm::make_communicator(world_.comm(), device(), checks, world_.collective_timeout());
  if (config.stage.value_or(0) > 0) zero_ = std::make_unique<ZeroRanks>(config, world_, device_communicator());
}

void Channels::disconnect() {
  shared_statistics_.reset();
  zero_.reset();
  on_device_.reset();
  on_cpu_.reset();
}

const mpi::Communicator& Channels::first_ranks(int count) {
  const auto known = first_ranks_.find(count);
  return known != first_ranks_.end() ? known->second : first_ranks_.emplace(count, host().first(count)).first->second;
}

comm::Communicator& Channels::communicator_of(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_cpu() ? device_communicator() : *on_cpu_;
}

std::shared_ptr<parallel::SharedStatistics> Channels::shared_statistics() {
  if (!shared_statistics_) {
    auto& device = device_communicator();
    shared_statistics_ = std::make_shared<parallel::SharedStatistics>(device.split(0, device.rank()));
  }
  return shared_statistics_;
}

// Abandons all of them, also after one that fails: other ranks may wait in any.
bool Channels::abandon(std::string_view reason) noexcept {
  bool all_are_free = true;
  const auto leave = [&](auto* left) { all_are_free &= left == nullptr || left->abandon(reason); };
  leave(on_cpu_.get());
  leave(on_device_.get());
  leave(shared_statistics_.get());
  leave(zero_.get());
  // Ranks of ZeRO on devices meet in MPI as well, from where nobody can call them back.
  return all_are_free && (!on_device_ || !zero_);
}

}  // namespace hortator::accelerator
