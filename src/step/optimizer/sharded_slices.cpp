#include "step/optimizer/sharded_slices.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "step/optimizer/whole_owners.hpp"

namespace hortator::step {
namespace {

// The cost of a tensor; for a matrix, the operations of one multiplication by its own transpose.
double cost_of(const at::Tensor& whole) {
  const auto elements = static_cast<double>(whole.numel());
  return whole.dim() < 2 ? elements : elements * static_cast<double>(std::min(whole.size(0), whole.size(-1)));
}

}  // namespace

ShardedSlices::ShardedSlices(const Groups& groups, comm::Communicator& ranks) : ranks_(ranks) {
  for (const auto& group : groups) {
    for (const auto& sharded : group) by_slice_.emplace(sharded.slice.unsafeGetTensorImpl(), &sharded);
  }
}

const ShardedOptimizer::ShardedParameter* ShardedSlices::find(const at::Tensor& parameter) const {
  const auto found = by_slice_.find(parameter.unsafeGetTensorImpl());
  return found == by_slice_.end() || found->second->flat == nullptr ? nullptr : found->second;
}

// A parameter of no sharded model is whole on each rank.
ParameterSlices::Slice ShardedSlices::of(const at::Tensor& parameter) const {
  const auto* const sharded = find(parameter);
  if (sharded == nullptr) return {.sizes = parameter.sizes().vec(), .counts = ranks_.rank() == 0};
  const auto owned = sharded->flat->owned(sharded->number);
  return {.sizes = sharded->parameter.sizes().vec(), .begin = owned.size() > 0 ? owned.begin : 0};
}

void ShardedSlices::sum(at::Tensor& numbers) const { ranks_.all_reduce(numbers, comm::ReduceOp::sum).wait(); }

std::vector<ShardedSlices::OwnedValue> ShardedSlices::owned_values(const std::vector<at::Tensor>& parameters) const {
  std::vector<OwnedValue> owned;
  std::vector<double> costs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto* const sharded = find(parameters[i]);
    if (sharded == nullptr) continue;
    owned.push_back({.number = i, .sharded = sharded});
    costs.push_back(cost_of(sharded->parameter));
  }
  const auto owners = whole_owners(costs, ranks_.size());
  for (std::size_t i = 0; i < owned.size(); ++i) owned[i].owner = owners[i];
  return owned;
}

void ShardedSlices::apply_to_whole(const std::vector<at::Tensor>& parameters, std::vector<at::Tensor>& values,
                                   at::ScalarType result, const WholeFunction& function) const {
  const auto owned = owned_values(parameters);
  auto wholes = collect(owned, values);
  for (auto& whole : wholes) {
    if (whole.defined()) whole = function(whole).to(result).contiguous();
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (find(parameters[i]) == nullptr) values[i] = function(values[i]).to(result);
  }
  distribute(owned, wholes, values, result);
}

// Returns the whole values that this rank owns; undefined tensors in place of the others. @collective
std::vector<at::Tensor> ShardedSlices::collect(const std::vector<OwnedValue>& owned,
                                               const std::vector<at::Tensor>& values) const {
  std::vector<comm::PeerTensor> sent, received;
  std::vector<at::Tensor> wholes(owned.size());
  for (std::size_t i = 0; i < owned.size(); ++i) {
    const auto& [number, sharded, owner] = owned[i];
    const auto& mine = values[number];
    if (mine.numel() > 0) sent.push_back({.tensor = mine.reshape({-1}), .peer = owner});
    if (owner != ranks_.rank()) continue;
    wholes[i] = at::empty(sharded->parameter.sizes(), mine.options());
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      const auto range = sharded->flat->plan().owned(sharded->number, rank);
      if (range.size() > 0)
        received.push_back({.tensor = wholes[i].view({-1}).narrow(0, range.begin, range.size()), .peer = rank});
    }
  }
  ranks_.exchange(std::move(sent), std::move(received)).wait();
  return wholes;
}

// Replaces values by slices of the results, which their owners have. @collective
void ShardedSlices::distribute(const std::vector<OwnedValue>& owned, const std::vector<at::Tensor>& results,
                               std::vector<at::Tensor>& values, at::ScalarType type) const {
  std::vector<comm::PeerTensor> sent, received;
  for (std::size_t i = 0; i < owned.size(); ++i) {
    const auto& [number, sharded, owner] = owned[i];
    auto& mine = values[number];
    mine = at::empty(mine.sizes(), mine.options().dtype(type));
    if (mine.numel() > 0) received.push_back({.tensor = mine.view({-1}), .peer = owner});
    if (owner != ranks_.rank()) continue;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      const auto range = sharded->flat->plan().owned(sharded->number, rank);
      if (range.size() > 0)
        sent.push_back({.tensor = results[i].view({-1}).narrow(0, range.begin, range.size()), .peer = rank});
    }
  }
  ranks_.exchange(std::move(sent), std::move(received)).wait();
}

}  // namespace hortator::step
