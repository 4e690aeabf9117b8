#include "parallel/batch_norm/marked_norms.hpp"

#include <ATen/ops/empty.h>
#include <torch/nn/modules/batchnorm.h>

#include <mutex>

namespace hortator::parallel {
namespace {

using torch::nn::BatchNorm1dImpl;
using torch::nn::BatchNorm2dImpl;
using torch::nn::BatchNorm3dImpl;

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

template <typename Norm>
at::Tensor tensor_of(Norm& norm) {
  if (norm.running_mean.defined()) return norm.running_mean;
  if (norm.weight.defined()) return norm.weight;
  return norm.running_mean = at::empty({0});
}

at::Tensor tensor_of(torch::nn::Module& module) {
  if (auto* norm = dynamic_cast<BatchNorm1dImpl*>(&module)) return tensor_of(*norm);
  if (auto* norm = dynamic_cast<BatchNorm2dImpl*>(&module)) return tensor_of(*norm);
  return tensor_of(dynamic_cast<BatchNorm3dImpl&>(module));
}

bool is_defined(const std::optional<at::Tensor>& tensor) { return tensor && tensor->defined(); }

}  // namespace

/// While the pointers to module and tensor have not expired, no other object has their addresses.
struct MarkedNorms::Mark {
  std::weak_ptr<torch::nn::Module> module;
  NormConnection connection = {};
  WeakTensor tensor = WeakTensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>());
};

bool is_batch_norm(const torch::nn::Module& module) {
  return dynamic_cast<const BatchNorm1dImpl*>(&module) != nullptr ||
         dynamic_cast<const BatchNorm2dImpl*>(&module) != nullptr ||
         dynamic_cast<const BatchNorm3dImpl*>(&module) != nullptr;
}

MarkedNorms& MarkedNorms::instance() {
  static auto* norms = new MarkedNorms;  // never destroyed: operators may run while static objects are destroyed
  return *norms;
}

void MarkedNorms::add(const std::shared_ptr<torch::nn::Module>& norm) {
  const std::scoped_lock lock(mutex_);
  for (auto* marks : {&by_module_, &by_tensor_})
    std::erase_if(*marks, [](const auto& item) { return item.second->module.expired(); });
  auto& mark = by_module_[norm.get()];
  if (mark == nullptr) mark = std::make_shared<Mark>(Mark{.module = norm});
  index(*norm, mark);
}

void MarkedNorms::index(torch::nn::Module& norm, const std::shared_ptr<Mark>& mark) {
  const auto tensor = tensor_of(norm);
  std::erase_if(by_tensor_, [&](const auto& item) { return item.second == mark; });
  mark->tensor = WeakTensor(tensor.getIntrusivePtr());
  by_tensor_.insert_or_assign(tensor.unsafeGetTensorImpl(), mark);
}

bool MarkedNorms::contains(const torch::nn::Module& norm) const {
  const std::shared_lock lock(mutex_);
  const auto found = by_module_.find(&norm);
  return found != by_module_.end() && !found->second->module.expired();
}

void MarkedNorms::join(torch::nn::Module& norm, const std::shared_ptr<SharedStatistics>& statistics) {
  const std::scoped_lock lock(mutex_);
  const auto& mark = by_module_.at(&norm);
  mark->connection = {.statistics = statistics, .has_joined = true};
  index(norm, mark);  // its tensors may be others than when it was marked
}

std::optional<MarkedNorms::Found> MarkedNorms::find(const std::optional<at::Tensor>& mean,
                                                    const std::optional<at::Tensor>& weight) const {
  const auto& known_by = is_defined(mean) ? mean : weight;
  if (!is_defined(known_by)) return std::nullopt;
  const std::shared_lock lock(mutex_);
  const auto found = by_tensor_.find(known_by->unsafeGetTensorImpl());
  if (found == by_tensor_.end()) return std::nullopt;
  const auto module = found->second->module.lock();
  if (module == nullptr) return std::nullopt;
  return Found{.is_training = module->is_training(), .connection = found->second->connection};
}

}  // namespace hortator::parallel
