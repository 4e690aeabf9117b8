#include "parallel/data_parallel/gradient_faults.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::parallel {

void check_dense(const std::string& name, const at::Tensor& gradient) {
  if (gradient.layout() == at::kStrided) return;
  throw UsageError({.what = text::concat("The gradient of ", text::quote(name), " is sparse"),
                    .why = "only sparse gradients of whole rows are averaged over ranks: not under ZeRO, and not of "
                           "parameters that parallel.tensor divides",
                    .hint = "construct the embedding without sparse(true)"});
}

Problem missing_gradients(const std::string& names) {
  return {
      .what = text::concat("Backward gave no gradient to ", names),
      .why = "the ranks' gradients can only be averaged when every parameter has one on every rank",
      .hint = "use these parameters in the loss, set requires_grad(false) on them, or set ddp.find_unused_parameters"};
}

void throw_missing(const mpi::Communicator& host, const std::vector<std::string>& missing) {
  const auto all = mpi::all_gather(host, std::string_view(text::join(missing)));
  int rank = 0;
  while (all[static_cast<std::size_t>(rank)].empty()) ++rank;
  throw UsageError(missing_gradients(all[static_cast<std::size_t>(rank)])).on_rank(rank);
}

}  // namespace hortator::parallel
