#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "interception/thread_operators.hpp"
#include "parallel/pipeline/plain/route.hpp"
#include "parallel/pipeline/plain/staged_values.hpp"
#include "parallel/pipeline/plain/tensor_stages.hpp"
#include "parallel/pipeline/stage_pass.hpp"

/// Pipelines of modules that are as they were written: each rank runs the whole forward pass, operator by operator,
/// and computes those of its own stages. A stage begins with the first operator that reads a parameter of it. Results
/// of other stages have shapes only, until a message brings the values of those that the stage uses.
namespace hortator::parallel {

/// Whether this thread runs such a forward pass, of several stages.
bool divides_plain_forward();

/// While it lives, random numbers of this thread's pass are not seeded operator by operator.
class UnseededScope {
 public:
  UnseededScope();
  ~UnseededScope();
  UnseededScope(const UnseededScope&) = delete;
  UnseededScope& operator=(const UnseededScope&) = delete;
};

/// Finds the route of a forward pass: while it lives, the operators of this thread that depend on parameters run on
/// shapes, and buffers stay as they are.
class PlainSurvey {
 public:
  PlainSurvey(const TensorStages& tensors, int stages);
  ~PlainSurvey();
  PlainSurvey(const PlainSurvey&) = delete;
  PlainSurvey& operator=(const PlainSurvey&) = delete;

  static bool is_on();  ///< for this thread

  /// Throws UsageError if no operator has read a parameter of a stage.
  Route finish() &&;

 private:
  static void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
  void note(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
  int stage_of(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  void begin(const TensorStages::Entry& entry, int stage) const;

  const TensorStages& tensors_;
  RouteBuilder builder_;
  ReadsInTurn reads_;
  StagedValues values_;
  PlainSurvey* former_;
  interception::ThreadOperators operators_;
};

/// One forward pass of a micro-batch through one stage: while it lives, the operators of this thread run for the
/// stage. At the end of a stage that is not the last one, an operator throws StageEnd.
class PlainPass {
 public:
  /// `route`: null if there is one stage. Positions of `border` are numbers of operators.
  PlainPass(const Route* route, int stage, StagePass::Border border);
  ~PlainPass();
  PlainPass(const PlainPass&) = delete;
  PlainPass& operator=(const PlainPass&) = delete;

  bool has_several_stages() const { return route_ != nullptr; }

 private:
  static void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
  void compute(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
  void follow(const c10::OperatorHandle& op) const;
  void enter();
  void leave();

  const Route* route_;
  int stage_;
  StagePass::Border border_;
  bool with_gradients_;
  std::int64_t next_ = 0;
  StagedValues values_;
  PlainPass* former_;
  interception::ThreadOperators operators_;
};

}  // namespace hortator::parallel
