#pragma once

#include <functional>
#include <hortator/training/accelerator_options.hpp>
#include <memory>

#include "observe/operators/operator_recorder.hpp"

namespace hortator::observe {

/// Removes what this rank has recorded in an earlier run. Throws UsageError if the folder cannot be written. Local.
void clear_record(const RecordOptions& options, int rank);

/// Implements RecordOptions: records the operators of one step, which begins after the update before and ends with
/// one.
class StepRecording {
 public:
  using NamedTensors = OperatorRecorder::NamedTensors;
  /// What there is when a step begins or ends.
  struct Tensors {
    std::function<NamedTensors()> parameters;  ///< of the modules
    std::function<NamedTensors()> stepped;     ///< what optimizers step: parameters, or slices of them
  };

  /// Call clear_record() before. Local.
  StepRecording(const RecordOptions& options, Tensors tensors, int rank, int ranks);
  /// Warns if the run ended before the step did.
  ~StepRecording();
  StepRecording(const StepRecording&) = delete;
  StepRecording& operator=(const StepRecording&) = delete;

  /// Call it when something was prepared: the first step begins then.
  void note_prepared();
  /// Call it when this rank begins to compute a part of the batch.
  void begin_part(int number);
  /// Call it when the gradients of an update are there.
  void before_update();
  void after_update();

 private:
  void begin();
  void write();

  RecordOptions options_;
  Tensors tensors_;
  int rank_;
  int ranks_;
  std::unique_ptr<OperatorRecorder> recorder_;
  std::int64_t updates_ = 0;
  bool is_written_ = false;
};

}  // namespace hortator::observe
