#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "comm/backends/make_communicator.hpp"
#include "mpi/communicator.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "parallel/tensor/interception.hpp"
#include "support/catch.hpp"

namespace hortator::test {

inline constexpr parallel::Division first{.dim = 0}, second{.dim = 1}, third{.dim = 2}, fourth{.dim = 3};

/// All ranks as one tensor group.
struct TensorGroup {
  mpi::Communicator host = mpi::Communicator::world();
  std::unique_ptr<comm::Communicator> communicator = comm::make_communicator(host, at::kCPU, comm::Checks::off);
  std::shared_ptr<parallel::TensorRanks> ranks = std::make_shared<parallel::TensorRanks>(*communicator, *communicator);

  TensorGroup() { parallel::start_division(); }

  /// A leaf like `whole` that is divided: this rank has its part.
  at::Tensor divided(const at::Tensor& whole, const parallel::Division& division) const {
    auto part = ranks->part_of(whole, division).requires_grad_(whole.is_floating_point());
    parallel::mark_divided(part, division, ranks);
    return part;
  }
  at::Tensor part_of(const at::Tensor& whole, const parallel::Division& division) const {
    return ranks->part_of(whole, division);
  }
  /// The values of a tensor that may be divided.
  at::Tensor whole(const at::Tensor& tensor) const {
    const at::NoGradGuard no_grad;
    return parallel::operand_of(tensor).whole();
  }
  std::int64_t gathered() const {
    std::int64_t all = 0;
    for (const auto& [name, times] : ranks->gathered()) all += times;
    return all;
  }
};

inline void check_close(const at::Tensor& found, const at::Tensor& expected, double tolerance = 2e-6) {
  REQUIRE(found.sizes() == expected.sizes());
  REQUIRE(found.scalar_type() == expected.scalar_type());
  const auto scale = expected.numel() > 0 ? std::max(1.0, expected.abs().max().to(at::kDouble).item<double>()) : 1.0;
  const auto difference = expected.numel() > 0 ? (found - expected).abs().max().to(at::kDouble).item<double>() : 0.0;
  CHECK(difference <= tolerance * scale);
}

}  // namespace hortator::test
