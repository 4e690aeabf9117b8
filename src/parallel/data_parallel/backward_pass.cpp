#include "parallel/data_parallel/backward_pass.hpp"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <utility>

namespace hortator::parallel {
namespace {

// While it lives, calls back when backward begins with `loss`.
template <typename Callback>
class LossHook {
 public:
  LossHook(const at::Tensor& loss, Callback callback) : loss_(loss), hook_(loss.register_hook(std::move(callback))) {}
  ~LossHook() { loss_.remove_hook(hook_); }
  LossHook(const LossHook&) = delete;
  LossHook& operator=(const LossHook&) = delete;

 private:
  const at::Tensor& loss_;
  unsigned hook_;
};

}  // namespace

bool is_within_backward() { return torch::autograd::get_current_node() != nullptr; }

int current_graph_task() { return torch::autograd::get_current_graph_task_id(); }

void BackwardPass::run(const at::Tensor& loss, bool retain_graph) {
  struct End {
    int& outermost;
    ~End() { outermost = no_graph_task; }
  } const end{outermost_};
  if (!loss.requires_grad()) return loss.backward();  // throws LibTorch's own error
  const LossHook hook(loss, [this](const at::Tensor&) { outermost_ = current_graph_task(); });
  loss.backward({}, retain_graph);
}

void PassEnd::call(std::function<void()> finish, const BackwardPass& pass) {
  if (pass.outermost() != no_graph_task || std::exchange(is_awaited_, true)) return;
  torch::autograd::Engine::get_default_engine().queue_callback([this, finish = std::move(finish)] {
    is_awaited_ = false;
    if (!is_within_backward()) finish();
  });
}

}  // namespace hortator::parallel
