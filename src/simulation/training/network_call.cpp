#include "simulation/training/network_call.hpp"

namespace hortator::simulation {

std::string shapes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::string> shapes;
  for (const auto& tensor : tensors) shapes.push_back(text::concat(tensor.scalar_type(), ' ', tensor.sizes()));
  return shapes.empty() ? "none" : text::join(shapes);
}

}  // namespace hortator::simulation
