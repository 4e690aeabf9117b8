#include "parallel/data_parallel/backward_pass.hpp"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <memory>
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

// A callback of the engine, which is destroyed without a call if an exception ends the graph task.
class EndOfTask {
 public:
  explicit EndOfTask(std::function<void()> interrupt) : interrupt_(std::move(interrupt)) {}
  ~EndOfTask() {
    if (interrupt_) interrupt_();
  }
  EndOfTask(const EndOfTask&) = delete;
  EndOfTask& operator=(const EndOfTask&) = delete;
  void note_done() { interrupt_ = nullptr; }

 private:
  std::function<void()> interrupt_;
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

void PassEnd::call(std::function<void()> finish, std::function<void()> interrupt, const BackwardPass& pass) {
  if (pass.outermost() != no_graph_task || std::exchange(is_awaited_, true)) return;
  const auto end = std::make_shared<EndOfTask>([this, interrupt = std::move(interrupt)] {
    is_awaited_ = false;
    interrupt();
  });
  torch::autograd::Engine::get_default_engine().queue_callback([this, end, finish = std::move(finish)] {
    is_awaited_ = false;
    if (!is_within_backward()) finish();
    end->note_done();
  });
}

}  // namespace hortator::parallel
