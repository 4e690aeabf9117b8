#pragma once

#include <memory>

#include "simulation/networks/network.hpp"
#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// Makes the network of a model's section, in the type that it asks for (dtype). Throws UsageError for an unknown type
/// or option. Reads the keys of the network only; the caller finishes the section.
std::shared_ptr<Network> make_network(const Section& model);

/// The type that `dtype` asks for. Throws UsageError for one in which the model cannot be trained.
at::ScalarType scalar_type_of(const Section& model);

}  // namespace hortator::simulation
