#pragma once

#include <memory>

#include "simulation/networks/network.hpp"

namespace hortator::simulation {

/// A network whose first output is the energy of its first input, with the forces as second output: the negative
/// gradient of the sum of the energies. Parameters and buffers have the names that they have in the network.
class ForceField : public Network {
 public:
  explicit ForceField(std::shared_ptr<Network> network);

  /// The energy, the forces, and the other outputs of the network.
  Tensors forward(const Tensors& inputs) override;
  void train(bool on = true) override;
  bool differentiates() const override { return true; }

 private:
  std::shared_ptr<Network> network_;
};

}  // namespace hortator::simulation
