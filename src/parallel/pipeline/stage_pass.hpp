#pragma once

#include <cstddef>
#include <functional>

#include "core/range.hpp"
#include "parallel/pipeline/stage_links.hpp"

namespace hortator::parallel {

/// One forward pass of a micro-batch through one stage, as PipelineLayers sees it.
class StagePass {
 public:
  struct Stage {
    core::Range layers;         ///< that the stage runs
    std::int64_t of_model = 0;  ///< layers of the whole model
    bool is_first = false, is_last = false;
  };

  /// `receive` returns what the previous stage has left; `send` takes what this stage leaves.
  StagePass(const Stage& stage, std::function<StageTensors()> receive, std::function<void(const StageTensors&)> send)
      : stage_(stage), receive_(std::move(receive)), send_(std::move(send)) {}

  const Stage& stage() const { return stage_; }
  bool is_entered() const { return is_entered_; }
  /// Throws UsageError if forward has come here before: a pass runs the layers once.
  void begin(std::size_t layers);
  StageTensors enter(const std::function<StageTensors()>& first);
  void leave(const StageTensors& results);

 private:
  Stage stage_;
  std::function<StageTensors()> receive_;
  std::function<void(const StageTensors&)> send_;
  bool is_begun_ = false, is_entered_ = false;
};

/// Ends forward on all stages but the last. Not derived from std::exception, so that programs do not catch it.
struct StageEnd {};

/// The pass that runs on this thread; null outside of a pipeline.
StagePass* current_pass();

/// While it lives, `pass` is the current one.
class PassScope {
 public:
  explicit PassScope(StagePass& pass);
  ~PassScope();
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;

 private:
  StagePass* before_;
};

}  // namespace hortator::parallel
