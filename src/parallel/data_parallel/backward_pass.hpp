#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace hortator::parallel {

/// The engine's graph task that runs on this thread; no_graph_task outside of backward. A backward within backward
/// (recomputation) is a task of its own, with a higher number.
int current_graph_task();
inline constexpr int no_graph_task = -1;
/// Whether the graph task at whose end this is called (from a callback) was a nested one.
bool is_within_backward();

/// A backward pass whose begin and end are known: accelerator.backward(). For loss.backward(), only the end is known.
class BackwardPass {
 public:
  void run(const at::Tensor& loss, bool retain_graph = false);

  /// The pass's own graph task, not a nested one; no_graph_task while no pass runs.
  int outermost() const { return outermost_; }

  /// Whether a pass that an exception has ended stays open, for the caller to complete. Otherwise the next one drops
  /// it.
  void keep_failed(bool keep) { keeps_failed_ = keep; }
  bool keeps_failed() const { return keeps_failed_; }

 private:
  int outermost_ = no_graph_task;
  bool keeps_failed_ = false;
};

/// Finds the end of a pass that began with plain loss.backward(), by a callback of the engine. Must live until backward
/// is over.
class PassEnd {
 public:
  /// Must be called from gradients' hooks. Calls `finish` at the end of the current graph task, unless that is a nested
  /// one: then the next gradient's call counts. If a nested task is the last one, only the caller of backward knows the
  /// end. Calls `interrupt` instead if an exception ends the task. Does nothing while `pass` runs, which knows its own
  /// end.
  void call(std::function<void()> finish, std::function<void()> interrupt, const BackwardPass& pass);
  /// Must be called when the pass is over.
  void forget() { is_awaited_ = false; }

 private:
  bool is_awaited_ = false;
};

}  // namespace hortator::parallel
