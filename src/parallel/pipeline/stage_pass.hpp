#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "core/range.hpp"
#include "parallel/pipeline/stage_links.hpp"

namespace hortator::parallel {

/// One forward pass of a micro-batch through one stage, as PipelineLayers sees it.
class StagePass {
 public:
  struct Stage {
    core::Range layers = {};               ///< that the stage runs
    std::optional<std::int64_t> of_model;  ///< layers of the whole model; nothing: the stage runs all, any number
    bool is_first = false, is_last = false;
  };

  /// What a pass does beside computing.
  struct Border {
    std::function<StageTensors()> receive = {};          ///< returns what the previous stage has left
    std::function<void(const StageTensors&)> send = {};  ///< takes what this stage leaves
    /// Called before layer `position` of the model draws random numbers; -1 and the number of layers: before what comes
    /// before and after them.
    std::function<void(std::int64_t position)> seed = {};
  };
  StagePass(const Stage& stage, Border border) : stage_(stage), border_(std::move(border)) {}

  const Stage& stage() const { return stage_; }
  /// Throws UsageError if forward has come here before: a pass runs the layers once.
  void begin(std::size_t layers);
  StageTensors enter(const std::function<StageTensors()>& first);
  void leave(const StageTensors& results);
  void begin_layer(std::int64_t layer) const;

 private:
  Stage stage_;
  Border border_;
  bool is_begun_ = false;
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
