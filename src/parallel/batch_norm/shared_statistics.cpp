#include "parallel/batch_norm/shared_statistics.hpp"

#include <hortator/parallel/sync_batch_norm.hpp>
#include <vector>

namespace hortator::parallel {
namespace {

std::vector<hortator::detail::SynchronizedNorm*> norms_in(const torch::nn::Module& module) {
  std::vector<hortator::detail::SynchronizedNorm*> norms;
  for (const auto& part : module.modules(/*include_self=*/false)) {
    if (auto* norm = dynamic_cast<hortator::detail::SynchronizedNorm*>(part.get())) norms.push_back(norm);
  }
  // The module itself may be an object that no shared_ptr owns.
  auto* self = dynamic_cast<hortator::detail::SynchronizedNorm*>(const_cast<torch::nn::Module*>(&module));
  if (self != nullptr) norms.push_back(self);
  return norms;
}

}  // namespace

bool has_synchronized_norms(const torch::nn::Module& module) { return !norms_in(module).empty(); }

void join_synchronized_norms(const torch::nn::Module& module, const std::shared_ptr<SharedStatistics>& statistics) {
  for (auto* norm : norms_in(module)) norm->join(statistics);
}

}  // namespace hortator::parallel
