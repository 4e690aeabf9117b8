#include "step/optimizer/divided_moments.hpp"

#include "step/optimizer/optimizer_fields.hpp"

namespace hortator::step {

void divide_moments(torch::optim::Optimizer& optimizer, const parallel::DividedModule& divided) {
  const auto& ranks = divided.ranks();
  if (ranks.size() == 1) return;
  for (const auto& one : divided.parameters()) {
    const auto found = optimizer.state().find(one.parameter.unsafeGetTensorImpl());
    if (found == optimizer.state().end()) continue;
    const auto whole = parallel::whole_sizes(one.part, one.division, ranks.size());
    replace_tensors(*found->second, [&](const at::Tensor& moment) {
      return moment.sizes() == whole ? ranks.part_of(moment, one.division) : moment;
    });
  }
}

}  // namespace hortator::step
