#include "parallel/local_sgd/parameter_average.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>

#include "parallel/data_parallel/alias.hpp"
#include "parallel/data_parallel/bucket_plan.hpp"

namespace hortator::parallel {
namespace {

std::vector<at::Tensor> without_integers(std::vector<at::Tensor> parameters) {
  std::erase_if(parameters, [](const auto& parameter) {
    return !at::isFloatingType(parameter.scalar_type()) && !at::isComplexType(parameter.scalar_type());
  });
  return parameters;
}

std::int64_t elements_of(const std::vector<at::Tensor>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0},
                         [](std::int64_t sum, const at::Tensor& tensor) { return sum + tensor.numel(); });
}

std::vector<std::vector<int>> plan_groups(const std::vector<at::Tensor>& parameters) {
  std::vector<BucketItem> items;
  for (const auto& parameter : parameters) {
    items.push_back({.elements = parameter.numel(),
                     .element_bytes = static_cast<std::int64_t>(parameter.element_size()),
                     .kind = {.type = parameter.scalar_type()}});
  }
  std::vector<int> order(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  BucketLimits limits;
  limits.first_bytes = limits.bytes;  // no small first group: nothing waits for it
  return plan_buckets(items, order, limits);
}

}  // namespace

ParameterAverage::ParameterAverage(std::vector<at::Tensor> parameters, comm::Communicator& communicator)
    : communicator_(communicator) {
  const auto all = without_integers(std::move(parameters));
  std::vector<std::vector<at::Tensor>> members;
  std::int64_t largest = 0;
  for (const auto& indices : plan_groups(all)) {
    auto& group = members.emplace_back();
    for (const int index : indices) group.push_back(all[static_cast<std::size_t>(index)]);
    largest = std::max(largest, elements_of(group) * static_cast<std::int64_t>(group.front().element_size()));
  }
  for (std::size_t i = 0; i < std::min(frames_.size(), members.size()); ++i) {
    frames_[i] = communicator_.allocate(largest, at::kByte);
  }
  for (auto& group : members) add_group(std::move(group));
}

void ParameterAverage::add_group(std::vector<at::Tensor> parameters) {
  const auto& frame = frames_[groups_.size() % frames_.size()];
  const auto type = parameters.front().scalar_type();
  Group group{.parameters = std::move(parameters), .packed = {}, .flat = {}};
  std::int64_t begin = 0;
  for (const auto& parameter : group.parameters) {
    group.packed.push_back(alias(frame, begin, parameter, type));
    begin += parameter.numel();
  }
  group.flat = frame.narrow(0, 0, begin * static_cast<std::int64_t>(c10::elementSize(type))).view(type);
  groups_.push_back(std::move(group));
}

void ParameterAverage::run() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (i >= frames_.size()) finish(groups_[i - frames_.size()]);
    start(groups_[i]);
  }
  const auto remaining = std::min(frames_.size(), groups_.size());
  for (std::size_t i = groups_.size() - remaining; i < groups_.size(); ++i) finish(groups_[i]);
}

void ParameterAverage::start(Group& group) {
  for (std::size_t i = 0; i < group.packed.size(); ++i) group.packed[i].copy_(group.parameters[i]);
  group.work = communicator_.all_reduce(group.flat, comm::ReduceOp::mean);
}

void ParameterAverage::finish(Group& group) {
  group.work.wait();
  for (std::size_t i = 0; i < group.packed.size(); ++i) group.parameters[i].copy_(group.packed[i]);
}

}  // namespace hortator::parallel
