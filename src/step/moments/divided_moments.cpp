#include "step/moments/divided_moments.hpp"

#include <string>

#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "parallel/tensor/joint_work.hpp"
#include "step/moments/optimizer_fields.hpp"

namespace hortator::step {
namespace {

using parallel::DividedModule;
using DividedParameter = DividedModule::DividedParameter;

/// Calls `use` with each divided parameter that has a state in the optimizer, and with that state.
template <typename Use>
void for_each_state(torch::optim::Optimizer& optimizer, const DividedModule& divided, const Use& use) {
  for (const auto& one : divided.parameters()) {
    const auto found = optimizer.state().find(one.parameter.unsafeGetTensorImpl());
    if (found != optimizer.state().end()) use(one, *found->second);
  }
}

std::size_t count_parts(const DividedParameter& one, torch::optim::OptimizerParamState& state) {
  std::size_t count = 0;
  replace_tensors(state, [&](const at::Tensor& moment) {
    if (moment.sizes() == one.part) ++count;
    return moment;
  });
  return count;
}

/// The number of parts for each parameter that has some; empty if none has.
std::string counts_of_parts(torch::optim::Optimizer& optimizer, const DividedModule& divided) {
  std::string counts;
  for_each_state(optimizer, divided, [&](const auto& one, auto& state) {
    if (const auto count = count_parts(one, state); count > 0) counts += text::concat(one.name, " ", count, ", ");
  });
  return counts;
}

}  // namespace

void divide_moments(torch::optim::Optimizer& optimizer, const DividedModule& divided) {
  const auto& ranks = divided.ranks();
  if (ranks.size() == 1) return;
  for_each_state(optimizer, divided, [&](const auto& one, auto& state) {
    const auto whole = parallel::whole_sizes(one.part, one.division, ranks.size());
    replace_tensors(state, [&](const at::Tensor& moment) {
      return moment.sizes() == whole ? ranks.part_of(moment, one.division) : moment;
    });
  });
}

void join_moments(torch::optim::Optimizer* optimizer, const DividedModule& divided, const mpi::Communicator& host) {
  const auto& ranks = divided.ranks();
  if (ranks.size() == 1) return;
  const auto counts = optimizer != nullptr ? counts_of_parts(*optimizer, divided) : "";
  mpi::same_on_all(host, counts, "what an optimizer remembers of divided parameters");
  if (counts.empty()) return;
  parallel::exchange_together(host, ranks, [&] {
    for_each_state(*optimizer, divided, [&](const auto& one, auto& state) {
      replace_tensors(state, [&](const at::Tensor& moment) {
        return moment.sizes() == one.part ? ranks.join(moment, one.division) : moment;
      });
    });
  });
}

void forget_moments(torch::optim::Optimizer& optimizer, const DividedModule& divided) {
  if (divided.ranks().size() == 1) return;
  for_each_state(optimizer, divided, [&](const auto& one, auto& state) {
    if (count_parts(one, state) > 0) optimizer.state().erase(one.parameter.unsafeGetTensorImpl());
  });
}

}  // namespace hortator::step
