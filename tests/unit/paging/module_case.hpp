#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fixtures.hpp"
#include "support/catch.hpp"

namespace hortator::testing {

/// A module, its parameters, and a call of it.
struct Subject {
  std::vector<paging::NamedTensor> tensors = {};
  std::function<at::Tensor()> forward = {};
};

template <typename Module>
Subject subject(Module module, std::function<at::Tensor()> forward, bool buffers = false) {
  return {.tensors = paging::named_tensors(*module, {.buffers = buffers}), .forward = std::move(forward)};
}

inline at::Tensor input(at::IntArrayRef sizes) { return at::randn(sizes).requires_grad_(); }

/// All results of two steps of plain gradient descent. `paged`: with eviction after every operator.
inline std::vector<at::Tensor> results_of(const std::function<Subject()>& make, bool paged) {
  at::manual_seed(77);
  const auto made = make();
  std::unique_ptr<paging::Pager> pager;
  if (paged) pager = page_in_host(made.tensors, 512, {.budget_bytes = evict_always});
  std::vector<at::Tensor> results;
  for (int step = 0; step < 2; ++step) {
    const auto out = made.forward();
    results.push_back(out.detach().clone());
    if (!out.requires_grad()) continue;
    out.square().sum().backward();
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : made.tensors) {
      if (!tensor.grad().defined()) continue;
      results.push_back(tensor.grad().is_sparse() ? tensor.grad().to_dense() : tensor.grad().clone());
      tensor.sub_(results.back(), 0.01);
      tensor.mutable_grad().reset();
    }
  }
  if (paged) {
    CHECK(pager->counters().fetched > 0);
    CHECK(pager->counters().frame_bytes <= pager->counters().peak_frame_bytes);
    pager->release();
  }
  for (const auto& [name, tensor] : made.tensors) results.push_back(tensor.detach().clone());
  return results;
}

inline void check_paged(const std::string& name, const std::function<Subject()>& make) {
  INFO(name);
  const auto expected = results_of(make, false);
  const auto actual = results_of(make, true);
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    INFO("result " << i);
    CHECK(same_bits(actual[i], expected[i]));
  }
}

}  // namespace hortator::testing
