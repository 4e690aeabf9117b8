#include <ATen/core/Tensor.h>

#include <hortator/model.hpp>

#include "paging/interception/thread_operators.hpp"
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

void ModelBase::before_forward() const {
  {
    const paging::ThreadOperators::Inside unseen;  // by a pipeline that runs forward operator by operator
    core_->before_forward();
  }
  core_->hooks().before_forward(core_->module());
}
bool ModelBase::has_hooks() const { return core_->hooks().any(); }
void ModelBase::after_forward(std::vector<at::Tensor>& results) const {
  core_->hooks().after_forward(core_->module(), results);
}

bool ModelBase::is_mixed() const { return core_->is_mixed(); }
Autocast ModelBase::autocast() const { return core_->autocast(); }

void detail::to_float32(at::Tensor& tensor) {
  if (tensor.defined() && at::isReducedFloatingType(tensor.scalar_type())) tensor = tensor.to(at::kFloat);
}

}  // namespace hortator
