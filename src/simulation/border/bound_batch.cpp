#include "simulation/border/bound_batch.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {

void BoundBatch::add(hortator_role role, const at::Tensor& tensor) {
  switch (role) {
    case HORTATOR_INPUT:
      return tensors_.inputs.push_back(tensor);
    case HORTATOR_TARGET:
      return tensors_.targets.push_back(tensor);
    case HORTATOR_OUTPUT:
      return tensors_.outputs.push_back(tensor);
    case HORTATOR_LOSS_ARGUMENT:
      return tensors_.loss_arguments.push_back(tensor);
  }
  throw UsageError({.what = text::concat("hortator_batch_add got the unknown role ", static_cast<int>(role)),
                    .hint = "use HORTATOR_INPUT, TARGET, OUTPUT or LOSS_ARGUMENT"});
}

}  // namespace hortator::simulation
