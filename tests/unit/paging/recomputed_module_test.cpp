#include <ATen/ATen.h>
#include <torch/nn.h>

#include <hortator/training/recompute.hpp>

#include "module_case.hpp"

namespace hortator::testing {

namespace nn = torch::nn;

TEST_CASE("Recomputed parts can be paged", "[modules]") {
  check_paged("recompute", [] {
    nn::Sequential block(nn::Linear(6, 6), nn::Dropout(0.4), nn::Tanh(), nn::Linear(6, 6));
    return subject(block, [block, x = input({3, 6})]() mutable {
      return recompute([block](const at::Tensor& in) mutable { return block->forward(in); }, x).relu();
    });
  });
}

}  // namespace hortator::testing
