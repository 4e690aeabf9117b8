#include "parallel/data_parallel/gradient_hook.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <hortator/error.hpp>
#include <utility>

namespace hortator::parallel {
namespace {

using Callback = std::function<void()>;

class HookSlot final : public torch::autograd::PostAccumulateGradHook {
 public:
  HookSlot(std::weak_ptr<Callback> callback, std::unique_ptr<PostAccumulateGradHook> users)
      : callback_(std::move(callback)), users_(std::move(users)) {}

  void operator()(const torch::autograd::Variable& parameter) override {
    if (users_) (*users_)(parameter);
    if (const auto callback = callback_.lock()) (*callback)();
  }

  bool is_armed() const { return !callback_.expired(); }
  std::unique_ptr<PostAccumulateGradHook> release_users() { return std::move(users_); }

 private:
  std::weak_ptr<Callback> callback_;
  std::unique_ptr<PostAccumulateGradHook> users_;
};

// Returns the user's callback from the slot. A disarmed HookSlot of an earlier Accelerator is dropped.
std::unique_ptr<torch::autograd::PostAccumulateGradHook> take_users_hook(const at::Tensor& parameter) {
  torch::autograd::impl::materialize_autograd_meta(parameter);  // a frozen parameter may have none
  auto present = std::move(torch::autograd::impl::post_acc_grad_hooks(parameter));
  auto* ours = dynamic_cast<HookSlot*>(present.get());
  if (ours == nullptr) return present;
  if (ours->is_armed()) {
    torch::autograd::impl::post_acc_grad_hooks(parameter) = std::move(present);
    throw UsageError({.what = "The module's parameters belong to a module that another Accelerator has prepared",
                      .why = "both would average the same gradients",
                      .hint = "use one Accelerator, or destroy the other first"});
  }
  return ours->release_users();
}

}  // namespace

GradientHook::GradientHook(const at::Tensor& parameter, Callback on_gradient)
    : armed_(std::make_shared<Callback>(std::move(on_gradient))) {
  torch::autograd::impl::set_post_acc_grad_hooks(parameter,
                                                 std::make_unique<HookSlot>(armed_, take_users_hook(parameter)));
}

GradientHook::~GradientHook() = default;

}  // namespace hortator::parallel
