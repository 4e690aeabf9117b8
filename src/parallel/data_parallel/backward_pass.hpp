#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace hortator::parallel {

/// Which of the engine's graph tasks runs on this thread; none outside of backward. A backward within backward
/// (recomputation) is a task of its own, begun later and with a higher number.
int current_graph_task();
inline constexpr int no_graph_task = -1;
/// In a callback at the end of a graph task: whether that was a nested one.
bool is_within_backward();

/// A backward pass whose begin and end are known: accelerator.backward(). With loss.backward() only its end is.
class BackwardPass {
 public:
  void run(const at::Tensor& loss);

  /// The pass's own graph task, not those nested within; none while no pass runs.
  int outermost() const { return outermost_; }

 private:
  int outermost_ = no_graph_task;
};

/// The end of a pass that began with plain loss.backward(): the engine tells it. Lives until backward is over.
class PassEnd {
 public:
  /// From a gradient's hook: `finish` is called at the end of the graph task that runs now. Where that is a nested one,
  /// the next gradient asks again; behind a nested one that is the last, only the caller of backward knows the end.
  /// Nothing where `pass` knows its own.
  void call(std::function<void()> finish, const BackwardPass& pass);
  /// The pass is over: the next one asks anew.
  void forget() { is_awaited_ = false; }

 private:
  bool is_awaited_ = false;
};

}  // namespace hortator::parallel
