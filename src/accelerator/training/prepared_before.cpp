#include "accelerator/training/prepared_before.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::accelerator {
namespace {

// @collective
template <typename Core, typename Object>
std::shared_ptr<Core> find(const std::vector<std::shared_ptr<Core>>& all, const Object& object, std::string_view kind,
                           const mpi::Communicator& host) {
  const auto wraps_it = [&](const auto& core) { return core->wraps(object); };
  const auto found = std::find_if(all.begin(), all.end(), wraps_it);
  const auto number = std::to_string(found - all.begin());
  mpi::same_on_all(host, number, text::concat("the number of the ", kind, " that prepare() was given"));
  return found == all.end() ? nullptr : *found;
}

template <typename Core, typename Object>
std::size_t find_destroyed(const std::vector<std::shared_ptr<Core>>& all, const Object& at_its_address) {
  const auto is_destroyed = [&](const auto& core) { return core->wraps(at_its_address) && core->is_replaced(); };
  return static_cast<std::size_t>(std::find_if(all.begin(), all.end(), is_destroyed) - all.begin());
}

// On all ranks the optimizers with the same number were destroyed; which ranks see it depends on reused addresses.
// @collective
void forget_destroyed(Training& training, const torch::optim::Optimizer& at_its_address) {
  const auto& all = training.prepared.optimizers();
  while (true) {
    const auto destroyed = mpi::all_reduce(training.host(), find_destroyed(all, at_its_address), mpi::Op::min);
    if (destroyed == all.size()) return;
    training.prepared.remove_optimizer(destroyed);
  }
}

}  // namespace

std::shared_ptr<step::ModelCore> prepared_before(const Training& training, const torch::nn::Module& module) {
  mpi::all_or_none(training.host(), [&] {
    if (find_destroyed(training.prepared.models(), module) == training.prepared.models().size()) return;
    throw UsageError({.what = "prepare() got a module where one stood that was prepared and is no more",
                      .why = "the Accelerator borrows plain modules, and would still average and save that one",
                      .hint = "call accelerator.free_memory() before prepared modules go, or make modules by "
                              "TORCH_MODULE or std::make_shared, which are kept"});
  });
  return find(training.prepared.models(), module, "model", training.host());
}

std::shared_ptr<step::OptimizerCore> prepared_before(Training& training, const torch::optim::Optimizer& optimizer) {
  forget_destroyed(training, optimizer);
  return find(training.prepared.optimizers(), optimizer, "optimizer", training.host());
}

}  // namespace hortator::accelerator
