#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <hortator/parallel/outer_optimizer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/state/divided_state.hpp"
#include "checkpoint/read/reader.hpp"
#include "parallel/local_sgd/difference_exchange.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "step/model/model_core.hpp"

namespace hortator::accelerator {

class Training;

/// Implements OuterOptimizer: the weights from which ranks began, and how their differences become a step. With ZeRO
/// each rank does that with its slices.
class OuterStep {
 public:
  /// Throws UsageError for options that do not fit. @collective
  OuterStep(Training& training, std::shared_ptr<step::ModelCore> model, OuterOptimizerOptions options);

  const step::ModelCore& model() const { return *model_; }
  std::int64_t steps() const { return steps_; }

  /// Ranks begin with the weights that the model has, the same on all.
  void begin();
  /// Gives all ranks the weights after a step from the mean of their differences. @collective
  void take();

  void save(SnapshotDraft& draft) const;
  std::vector<std::string> misfits(const checkpoint::Reader& reader) const;
  void load(const checkpoint::Reader& reader);
  /// Copies what it keeps in memory, and returns a function that puts it back.
  std::function<void()> remember();

 private:
  struct Weight {
    std::string name;
    at::Tensor parameter;
    std::int64_t begin = 0;           ///< in rows
    std::vector<std::int64_t> sizes;  ///< of what this rank steps of the parameter
  };
  bool is_sparse() const { return options_.wire == OuterWire::sparse; }
  double rate() const { return options_.learning_rate.value_or(is_sparse() ? 1.0 : 0.7); }
  static at::Tensor part(const at::Tensor& row, const Weight& weight);
  at::Tensor stepped(const Weight& weight) const { return model_->stepped(weight.parameter); }
  std::string path_of(const std::string& name) const { return "outer/" + options_.name + "/" + name; }
  void load_unsent(const checkpoint::Reader& reader);
  std::string layout() const;

  Training& training_;
  std::shared_ptr<step::ModelCore> model_;
  OuterOptimizerOptions options_;
  std::vector<Weight> weights_;
  std::optional<parallel::DifferenceExchange> exchange_;  ///< nothing on one rank
  // Rows of all weights, in fp32.
  at::Tensor begun_;     ///< the weights from which ranks began; undefined before begin()
  at::Tensor momentum_;  ///< undefined with OuterWire::sparse
  at::Tensor unsent_;    ///< of this node; undefined before the first step, and where another rank sends
  std::int64_t elements_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace hortator::accelerator
