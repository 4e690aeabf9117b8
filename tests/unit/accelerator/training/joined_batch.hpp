#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <vector>

#include "unit/accelerator/fixtures.hpp"

namespace hortator::test {

/// The given numbers of samples for each rank, cut from one batch that every rank has.
struct JoinedBatch {
  JoinedBatch(const Accelerator& accelerator, std::vector<std::int64_t> shape, at::ScalarType type,
              std::int64_t first = 2) {
    const int rank = accelerator.process_index();
    for (int r = 0; r < accelerator.num_processes(); ++r) {
      if (r == rank) begin = total;
      total += first + 2 * r;
    }
    count = first + 2 * rank;
    shape[0] = total;
    const auto generator = at::detail::createCPUGenerator(4);
    whole = (at::randn(shape, generator, at::kDouble) * 3 + 5).to(type);
    weights = at::randn(shape, generator, at::kDouble).to(type);
  }
  at::Tensor own(const at::Tensor& tensor) const { return tensor.narrow(0, begin, count); }
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t total = 0;
  at::Tensor whole;
  at::Tensor weights;  ///< of each output in the loss
};

inline bool close(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) {
  const double tolerance = type == at::kDouble ? 1e-10 : type == at::kFloat ? 1e-5 : 5e-2;
  return at::allclose(a.to(at::kDouble), b.to(at::kDouble), tolerance, tolerance);
}

}  // namespace hortator::test
