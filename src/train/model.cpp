#include <hortator/model.hpp>
#include <unordered_set>

#include "train/model_core.hpp"
#include "train/replicate.hpp"

namespace hortator {
namespace train {
namespace {

// Tied parameters stand under several names in the module and once here.
std::vector<NamedParameter> trainable_parameters(const torch::nn::Module& module) {
  std::vector<NamedParameter> parameters;
  std::unordered_set<const void*> seen;
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad() || !seen.insert(item.value().unsafeGetTensorImpl()).second) continue;
    parameters.push_back({.name = item.key(), .tensor = item.value()});
  }
  return parameters;
}

}  // namespace

ModelCore::ModelCore(torch::nn::Module& module, std::string name, std::shared_ptr<const Session> session,
                     comm::Communicator& communicator, const mpi::Communicator& host)
    : module_(&module),
      name_(std::move(name)),
      session_(std::move(session)),
      reducer_((replicate(module, communicator, host), trainable_parameters(module)), communicator, host) {}

}  // namespace train

std::vector<at::Tensor> ModelBase::parameters() const {
  core_->check_alive();
  return core_->module().parameters();
}

void ModelBase::train(bool on) const {
  core_->check_alive();
  core_->module().train(on);
}

void ModelBase::zero_grad() const {
  core_->check_alive();
  core_->module().zero_grad();
}

void ModelBase::before_forward() const { core_->check_alive(); }

}  // namespace hortator
