#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/range.hpp"
#include "parallel/pipeline/halved_backward.hpp"
#include "parallel/pipeline/plain/route.hpp"
#include "parallel/pipeline/stage_map.hpp"
#include "parallel/pipeline/stage_pass.hpp"
#include "parallel/pipeline/stage_ranks.hpp"
#include "parallel/pipeline/timeline.hpp"

namespace hortator::parallel {

/// What the program computes with one micro-batch: runs on every stage, and to its end on the last one.
struct MicroBatchWork {
  /// Returns what backward of the last stage begins with; undefined without backward.
  std::function<at::Tensor(int micro_batch)> forward;
  /// Seeds the generators for what a micro-batch draws at a position: StagePass::Border::seed. May be empty.
  std::function<void(int micro_batch, std::int64_t position)> seed = {};
  /// Whether the module names no layers: PlainPass runs its stages.
  bool is_plain = false;
  /// The route of its forward; null with one stage.
  const Route* route = nullptr;
  /// Returns an activation as the next stage gets it: whole, where ranks each have a part of it. May be empty.
  std::function<at::Tensor(const at::Tensor& activation)> whole = {};
  /// Whether no other rank computes the same stage together with this one: while it waits for a message, it may compute
  /// gradients of weights that its plan has later.
  bool is_alone = false;
  /// Called before each action, after a forward pass, and when backward has left all gradients of its weights. May be
  /// empty.
  std::function<void(const StageAction& action)> begin = {};
  std::function<void(int stage, int micro_batch, const StageTensors& results)> end_forward = {};
  std::function<void(int stage, int micro_batch)> end_backward = {};
  /// Called when a stage has failed, before it notifies others: frees ranks that wait for this one in collectives.
  std::function<void()> on_failure = {};
};

/// Runs a rank's part of a pipeline: its stages' forward and backward passes in the order of the schedule, with the
/// messages between them. Gradients of weights, for which no rank waits, may come earlier than planned, in their order:
/// a weight's sums are the same. A rank that fails computes nothing more, but sends what the others wait for, marked as
/// failed: they compute nothing more either, and all come to the end.
class StageWork {
 public:
  /// `stages` is null if there is one stage. All must outlive this.
  StageWork(StageRanks* stages, const StageMap* map, MicroBatchWork work)
      : stages_(stages), map_(map), work_(std::move(work)) {}

  /// Afterwards the gradients of this rank's parameters are sums over the micro-batches. @collective over the pipeline
  void run(const std::vector<StageAction>& plan);
  /// Whether this rank or one before it in the flow of messages has failed.
  bool has_failed() const { return has_failed_; }
  /// What this rank has thrown; null if it has not.
  const std::exception_ptr& error() const { return error_; }
  /// When each action computed, in seconds from the start of run(): without the time in which it waited for a message.
  const std::vector<Timeline::Entry>& times() const { return times_; }

 private:
  struct Pass {
    StageTensors inputs = {};   ///< leaves, from the previous stage
    StageTensors results = {};  ///< that went to the next stage
    at::Tensor loss = {};
    std::optional<HalvedBackward> halves = {};  ///< after the first half of backward
  };
  /// The messages that an action owes the other ranks.
  struct Debts {
    bool receives = false, sends = false;
  };

  StageAction take_next(std::vector<StageAction>& left);
  bool would_wait(const StageAction& action);
  bool has_halves(const StageAction& weights) const;
  bool is_first(int stage) const { return stage == 0; }
  bool is_last(int stage) const { return stages_ == nullptr || stage + 1 == stages_->shape.stages(); }
  void attempt(const StageAction& action);
  void compute(const StageAction& action, Debts& owed);
  void forward(const StageAction& action, Debts& owed);
  void backward(const StageAction& action, Debts& owed);
  void add_weights(const StageAction& action);
  void pay(const StageAction& action, Debts owed);
  StageTensors receive(const StageAction& action, Debts& owed);
  void send(const StageAction& action, const StageTensors& tensors, Debts& owed);

  StageRanks* stages_;
  const StageMap* map_;
  MicroBatchWork work_;
  std::map<std::pair<int, int>, Pass> passes_;  ///< by stage and micro-batch, from forward to backward
  bool has_failed_ = false;
  std::exception_ptr error_;
  std::vector<Timeline::Entry> times_;
  double begun_ = 0;  ///< of the current action
};

}  // namespace hortator::parallel
