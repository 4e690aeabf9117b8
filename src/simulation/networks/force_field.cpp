#include "simulation/networks/force_field.hpp"

#include <hortator/derivatives.hpp>
#include <hortator/error.hpp>

namespace hortator::simulation {

ForceField::ForceField(std::shared_ptr<Network> network) : network_(std::move(network)) { adopt(*network_); }

Network::Tensors ForceField::forward(const Tensors& inputs) {
  if (inputs.empty()) throw UsageError({.what = "The batch has no input", .hint = "bind an array as HORTATOR_INPUT"});
  Tensors outputs;
  const auto energy = [&](const at::Tensor& positions) {
    auto all = inputs;
    all.front() = positions;
    outputs = network_->forward(all);
    if (outputs.empty()) throw UsageError({.what = "The model has no output, and so no energy"});
    return outputs.front();
  };
  auto result = energy_and_forces(energy, inputs.front());
  outputs.front() = result.energy;
  outputs.insert(outputs.begin() + 1, result.forces);
  return outputs;
}

void ForceField::train(bool on) {
  torch::nn::Module::train(on);
  network_->train(on);
}

}  // namespace hortator::simulation
