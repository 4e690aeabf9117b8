#include "parallel/pipeline/work/parameter_reads.hpp"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_set>

namespace hortator::parallel {

int count_reads(const at::Tensor& parameter, const std::vector<at::Tensor>& results) {
  const auto* const wanted = torch::autograd::impl::gradient_edge(parameter).function.get();
  std::vector<torch::autograd::Node*> waiting;
  std::unordered_set<const torch::autograd::Node*> seen;
  const auto visit = [&](torch::autograd::Node* node) {
    if (node != nullptr && seen.insert(node).second) waiting.push_back(node);
  };
  for (const auto& result : results) {
    if (result.defined()) visit(result.grad_fn().get());
  }
  int reads = 0;
  while (!waiting.empty()) {
    const auto* const node = waiting.back();
    waiting.pop_back();
    for (const auto& edge : node->next_edges()) {
      reads += edge.function.get() == wanted ? 1 : 0;
      visit(edge.function.get());
    }
  }
  return reads;
}

}  // namespace hortator::parallel
