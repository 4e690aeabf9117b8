#include "parallel/zero/sharded_model.hpp"

#include <algorithm>
#include <utility>

namespace hortator::parallel {

void ShardedModel::add(std::unique_ptr<FlatParameters> parameters, const ShardRanks& ranks) {
  groups_.push_back({.parameters = std::move(parameters), .ranks = ranks});
}

FlatParameter ShardedModel::find(const at::Tensor& parameter) const {
  for (const auto& group : groups_) {
    if (const auto number = group.parameters->find(parameter)) return {group.parameters.get(), *number};
  }
  return {};
}

bool ShardedModel::is_any_sharded() const {
  return std::ranges::any_of(groups_, [](const Group& group) { return group.parameters->is_any_sharded(); });
}

bool ShardedModel::is_lent() const {
  return std::ranges::any_of(groups_, [](const Group& group) { return group.parameters->is_lent(); });
}

void ShardedModel::check_untouched() const {
  for (const auto& group : groups_) group.parameters->check_untouched();
}

bool ShardedModel::is_stepped() const {
  return std::ranges::any_of(groups_, [](const Group& group) { return group.parameters->is_stepped(); });
}

void ShardedModel::guard_slices() {
  for (const auto& group : groups_) group.parameters->guard_slices();
}

void ShardedModel::arrive() {
  for (const auto& group : groups_) group.parameters->arrive();
}

void ShardedModel::publish_all() {
  for (const auto& group : groups_) group.parameters->publish_all();
}

void ShardedModel::publish_alone(bool in_common_memory) {
  for (const auto& group : groups_) group.parameters->publish_alone(in_common_memory);
}

void ShardedModel::lend_together(const mpi::Communicator& host, const FlatParameters::Choice& choice) {
  std::size_t lent = 0;
  try {
    for (; lent < groups_.size(); ++lent) groups_[lent].parameters->lend_together(host, choice);
  } catch (...) {
    while (lent > 0) groups_[--lent].parameters->take_back(/*keep_changes=*/false);
    throw;
  }
}

void ShardedModel::take_back(bool keep_changes) {
  for (const auto& group : groups_) group.parameters->take_back(keep_changes, group.ranks.replicas);
}

void ShardedModel::release(FlatParameters::ReleaseMode mode) {
  for (const auto& group : groups_) group.parameters->release(mode);
}

}  // namespace hortator::parallel
