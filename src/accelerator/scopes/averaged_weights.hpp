#pragma once

#include <functional>
#include <hortator/training/ema.hpp>
#include <string>
#include <vector>

#include "accelerator/state/divided_state.hpp"
#include "checkpoint/read/reader.hpp"
#include "step/model/model_core.hpp"

namespace hortator::accelerator {

class Training;

/// Implements Ema: averages of what this rank has of a model's trained weights.
class AveragedWeights {
 public:
  /// Throws UsageError for options that do not fit.
  AveragedWeights(Training& training, std::shared_ptr<step::ModelCore> model, EmaOptions options);

  void update();
  std::int64_t updates() const { return updates_; }
  double decay() const { return updates_ == 0 ? 0 : ema_decay(options_, updates_); }

  /// Gives the model the averages. @collective
  void enter();
  /// Gives it the trained weights again. `alone`: the other ranks may not come. UsageError if the model was freed
  /// since, unless `alone`. @collective unless `alone`
  void leave(bool alone);

  void save(SnapshotDraft& draft) const;
  std::vector<std::string> misfits(const checkpoint::Reader& reader) const;
  void load(const checkpoint::Reader& reader);
  /// Gives all of these ranks the averages of one of them. @collective
  void take_over(const parallel::RankGroup& ranks, int root);
  /// Copies the averages in memory, and returns a function that puts them back.
  std::function<void()> remember();

 private:
  struct Average {
    std::string name = {};      ///< of the parameter
    at::Tensor parameter = {};  ///< the user's
    at::Tensor average = {};
    at::Tensor trained = {};  ///< while the model has the averages
  };

  bool was_skipped() const;
  void average();
  void copy_model();
  at::Tensor held(const Average& one) const { return model_->stepped(one.parameter); }
  void publish();
  void leave_freed(bool alone);
  bool is_in_common_memory() const;
  std::string path_of(const std::string& name) const { return "averages/" + options_.name + "/" + name; }

  Training& training_;
  std::shared_ptr<const step::AcceleratorSession> session_;
  std::shared_ptr<step::ModelCore> model_;
  EmaOptions options_;
  std::vector<Average> averages_;
  std::int64_t calls_ = 0;
  std::int64_t updates_ = 0;
  bool in_use_ = false;
};

}  // namespace hortator::accelerator
