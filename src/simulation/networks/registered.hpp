#pragma once

#include <torch/nn/modules/container/any.h>

#include "simulation/networks/network.hpp"
#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// A C++ module that the program has registered by name. Its parameters have the module's own names.
class Registered : public Network {
 public:
  /// Keys: name. Throws UsageError if no module of that name was registered.
  explicit Registered(const Section& section);

  Tensors forward(const Tensors& inputs) override;

 private:
  torch::nn::AnyModule module_;
};

}  // namespace hortator::simulation
