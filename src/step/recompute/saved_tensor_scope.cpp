#include "step/recompute/saved_tensor_scope.hpp"

#include <ATen/SavedTensorHooks.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/input_buffer.h>

#include <hortator/error.hpp>
#include <typeinfo>

namespace hortator::step {
namespace {

namespace autograd = torch::autograd;

// The type of LibTorch's node pointers depends on its release.
using NodePointer = decltype(autograd::NodeTask::fn_);

thread_local const SavedTensorScope* innermost = nullptr;

// LibTorch asks its engine for the hooks of each saved tensor. (Python's engine finds them on Python's stack.) This
// engine returns the hooks, and forwards all work to the base engine, whose threads and queues stay the only ones. It
// may be installed at any time, also during a backward pass.
class HookedEngine final : public autograd::Engine {
 public:
  static autograd::Engine& instance() {
    static auto* engine = new HookedEngine;  // never destroyed, since static tensors may outlive it
    return *engine;
  }

  autograd::variable_list execute(const autograd::edge_list& roots, const autograd::variable_list& inputs,
                                  bool keep_graph, bool create_graph, bool accumulate_grad,
                                  const autograd::edge_list& outputs) override {
    return get_base_engine().execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }

  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(const std::shared_ptr<autograd::GraphTask>& task,
                                                                 NodePointer root,
                                                                 autograd::InputBuffer&& gradients) override {
    return get_base_engine().execute_with_graph_task(task, std::move(root), std::move(gradients));
  }

  std::unique_ptr<autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return innermost == nullptr ? nullptr : innermost->hooks();
  }
};

void install() {
  auto& present = autograd::Engine::get_default_engine();
  if (&present == &HookedEngine::instance()) return;
  if (typeid(present) != typeid(autograd::Engine)) {
    throw UsageError({.what = "Activations cannot be recomputed or moved: the autograd engine is not LibTorch's",
                      .why = "this process has loaded Python's torch, whose engine would keep the activations",
                      .hint = "use torch.utils.checkpoint or saved_tensors_hooks there, or a process without Python"});
  }
  autograd::set_default_engine_stub(HookedEngine::instance);
}

void check_enabled() {
  const auto& reason = at::SavedTensorDefaultHooks::get_disabled_error_message();
  if (!reason) return;
  throw UsageError(
      {.what = "Activations cannot be recomputed or moved here: hooks on saved tensors are disabled", .why = *reason});
}

}  // namespace

SavedTensorScope::SavedTensorScope(Make make) : make_(std::move(make)), outer_(innermost) {
  install();
  check_enabled();
  innermost = this;
}

SavedTensorScope::~SavedTensorScope() { innermost = outer_; }

const SavedTensorScope* SavedTensorScope::current() { return innermost; }

}  // namespace hortator::step
