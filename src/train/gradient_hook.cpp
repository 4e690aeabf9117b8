#include "train/gradient_hook.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace hortator::train {
namespace {

using Callback = std::function<void()>;

class Slot final : public torch::autograd::PostAccumulateGradHook {
 public:
  Slot(std::weak_ptr<Callback> callback, std::unique_ptr<PostAccumulateGradHook> users)
      : callback_(std::move(callback)), users_(std::move(users)) {}

  void operator()(const torch::autograd::Variable& parameter) override {
    if (users_) (*users_)(parameter);
    if (const auto callback = callback_.lock()) (*callback)();
  }

  std::unique_ptr<PostAccumulateGradHook> release_users() { return std::move(users_); }

 private:
  std::weak_ptr<Callback> callback_;
  std::unique_ptr<PostAccumulateGradHook> users_;
};

// What the user had put into the slot; a disarmed Slot of an earlier Accelerator is dropped.
std::unique_ptr<torch::autograd::PostAccumulateGradHook> take_users_hook(const at::Tensor& parameter) {
  auto present = std::move(torch::autograd::impl::post_acc_grad_hooks(parameter));
  if (auto* ours = dynamic_cast<Slot*>(present.get())) return ours->release_users();
  return present;
}

}  // namespace

GradientHook::GradientHook(const at::Tensor& parameter, Callback on_gradient)
    : armed_(std::make_shared<Callback>(std::move(on_gradient))) {
  torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<Slot>(armed_, take_users_hook(parameter)));
}

GradientHook::~GradientHook() = default;

}  // namespace hortator::train
