#include "parallel/experts/expert_products.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>

namespace hortator::parallel {

// unbind(), not select(): its backward makes one gradient of all experts, not one for each.
at::Tensor LocalExperts::operator()(const at::Tensor& rows, const std::vector<std::int64_t>& counts) const {
  const auto inputs = rows.split_with_sizes(counts);
  const auto gate_ups = gate_up_proj.unbind(0), downs = down_proj.unbind(0);
  std::vector<at::Tensor> outputs;
  for (std::size_t expert = 0; expert < inputs.size(); ++expert) {
    const auto gate_up = at::linear(inputs[expert], gate_ups[expert]).chunk(2, -1);
    outputs.push_back(at::linear(activation(gate_up[0]) * gate_up[1], downs[expert]));
  }
  return at::cat(outputs);
}

}  // namespace hortator::parallel
