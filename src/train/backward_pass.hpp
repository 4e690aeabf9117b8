#pragma once

#include <ATen/core/Tensor.h>

namespace hortator::train {

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

}  // namespace hortator::train
