#include "simulation/share_weights.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "simulation/calls/local_outcome.hpp"

namespace hortator::simulation {
namespace {

using Weights = std::vector<std::pair<std::string, at::Tensor>>;

/// What two models must have in common.
std::string description_of(const Weights& weights) {
  std::string lines;
  for (const auto& [name, tensor] : weights)
    lines += text::concat(name, ' ', tensor.scalar_type(), ' ', tensor.sizes(), '\n');
  return lines;
}

std::string first_difference(const std::string& given, const std::string& wanted) {
  const auto here = text::split(wanted, '\n');
  const auto there = text::split(given, '\n');
  const auto [mine, other] = std::ranges::mismatch(here, there);
  return text::concat("it has ", mine == here.end() || mine->empty() ? "no further tensor" : *mine,
                      ", the model to copy ", other == there.end() || other->empty() ? "no further tensor" : *other);
}

std::string packed(const Weights& weights) {
  std::string bytes;
  for (const auto& [name, tensor] : weights) {
    const auto values = tensor.detach().to(at::kCPU).contiguous();
    bytes.append(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
  }
  return bytes;
}

std::vector<at::Tensor> unpacked(const std::string& bytes, const Weights& weights) {
  std::vector<at::Tensor> all;
  std::size_t begin = 0;
  for (const auto& [name, tensor] : weights) {
    const auto values = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).requires_grad(false));
    if (values.nbytes() > 0) std::memcpy(values.mutable_data_ptr(), bytes.data() + begin, values.nbytes());
    begin += values.nbytes();
    all.push_back(values);
  }
  return all;
}

void overwrite(const Weights& weights, const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values.size(); ++i) at::Tensor(weights[i].second).copy_(values[i]);
}

/// The first rank with a model to copy. @collective
int giver_of(const mpi::Communicator& comm, const TrainedModel* from) {
  const auto givers = mpi::all_gather(comm, from != nullptr ? 1 : 0);
  const auto giver = static_cast<int>(std::ranges::find(givers, 1) - givers.begin());
  if (giver < comm.size()) return giver;
  throw UsageError({.what = "No rank gives weights", .hint = "pass the trained model as `from` on at least one rank"});
}

/// The weights to overwrite, which are as those of the giver.
Weights fitting_weights(const TrainedModel& to, const std::string& given) {
  auto weights = to.own_weights();
  const auto wanted = description_of(weights);
  if (wanted == given) return weights;
  throw UsageError({.what = text::concat("The model ", text::quote(to.name()),
                                         " cannot take over the weights: ", first_difference(given, wanted)),
                    .hint = "use one entry of the settings for both"});
}

}  // namespace

void share_weights(const mpi::Communicator& comm, const TrainedModel* from, TrainedModel* to) {
  const auto giver = giver_of(comm, from);
  const bool gives = comm.rank() == giver;
  std::string bytes;
  std::string description;
  all_succeed(comm, [&] {
    if (!gives) return;
    bytes = packed(from->whole_weights());
    description = description_of(from->whole_weights());
  });
  description = mpi::broadcast(comm, std::string_view(description), giver);
  Weights mine;
  all_succeed(comm, [&] {
    if (to != nullptr) mine = fitting_weights(*to, description);
  });
  bytes = mpi::broadcast(comm, std::string_view(bytes), giver);
  std::vector<at::Tensor> values;
  all_succeed(comm, [&] { values = unpacked(bytes, mine); });
  overwrite(mine, values);
}

}  // namespace hortator::simulation
