#include <ATen/core/Tensor.h>

#include <hortator/model.hpp>

#include "interception/thread_operators.hpp"
#include "step/model/layer_hooks.hpp"
#include "step/model/model_core.hpp"

namespace hortator {

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
  core_->zero_grad();
}

ModelHookHandle ModelBase::add_hook(ModelHook hook) const {
  core_->check_alive();
  return core_->hooks().add(std::move(hook));
}

ModelHookHandle ModelBase::add_hook(const std::string& layer, ModelHook hook) const {
  core_->check_alive();
  return step::add_layer_hook(core_->module(), layer, std::move(hook));
}

void ModelBase::before_forward() const {
  {
    const interception::ThreadOperators::Inside unseen;  // by a pipeline that runs forward operator by operator
    core_->before_forward();
  }
  core_->hooks().before_forward(core_->module());
}
bool ModelBase::has_hooks() const { return core_->hooks().any(); }
bool ModelBase::has_argument_hooks() const { return core_->hooks().any_on_arguments(); }
std::vector<at::Tensor> ModelBase::changed_arguments(const std::vector<at::Tensor>& arguments) const {
  auto changed = arguments;
  core_->hooks().on_arguments(core_->module(), changed);
  return changed;
}
void ModelBase::after_forward(std::vector<at::Tensor>& results) const {
  core_->hooks().after_forward(core_->module(), results);
}

bool ModelBase::is_mixed() const { return core_->is_mixed(); }
void ModelBase::to_output_type(at::Tensor& tensor) const {
  const auto type = core_->output_type();
  if (!type) return detail::to_float32(tensor);
  if (tensor.defined() && at::isFloatingType(tensor.scalar_type())) tensor = tensor.to(*type);
}
Autocast ModelBase::autocast() const { return core_->autocast(); }

void detail::to_float32(at::Tensor& tensor) {
  if (tensor.defined() && at::isReducedFloatingType(tensor.scalar_type())) tensor = tensor.to(at::kFloat);
}

}  // namespace hortator
