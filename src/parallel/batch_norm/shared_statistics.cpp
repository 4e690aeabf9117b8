#include "parallel/batch_norm/shared_statistics.hpp"

#include <algorithm>
#include <hortator/parallel/sync_batch_norm.hpp>

#include "parallel/batch_norm/marked_norms.hpp"

namespace hortator::parallel {
namespace {

using hortator::detail::SynchronizedNorm;

void join(torch::nn::Module& module, const std::shared_ptr<SharedStatistics>& statistics) {
  if (auto* norm = dynamic_cast<SynchronizedNorm*>(&module)) norm->join(statistics);
  if (auto& marked = MarkedNorms::instance(); marked.contains(module)) marked.join(module, statistics);
}

}  // namespace

bool is_synchronized_norm(const torch::nn::Module& module) {
  return dynamic_cast<const SynchronizedNorm*>(&module) != nullptr || MarkedNorms::instance().contains(module);
}

// The module itself may be an object that no shared_ptr owns.
bool has_synchronized_norms(const torch::nn::Module& module) {
  const auto parts = module.modules(/*include_self=*/false);
  return is_synchronized_norm(module) ||
         std::ranges::any_of(parts, [](const auto& part) { return is_synchronized_norm(*part); });
}

void join_synchronized_norms(torch::nn::Module& module, const std::shared_ptr<SharedStatistics>& statistics) {
  for (const auto& part : module.modules(/*include_self=*/false)) join(*part, statistics);
  join(module, statistics);
}

}  // namespace hortator::parallel
