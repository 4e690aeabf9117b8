#pragma once

#include <hortator/parallel/gradient_scopes.hpp>
#include <vector>

#include "accelerator/training/training.hpp"
#include "parallel/uneven/uneven_inputs.hpp"

namespace hortator::accelerator {

/// Behind JoinUnevenInputs. As the reference: ranks only join where even_batches is off, by the options or for the
/// scope.
class Joining {
 public:
  Joining(Training& training, std::vector<ModelBase> models, const JoinOptions& options);
  ~Joining();
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;

  /// @collective
  void leave();
  int exceptions_at_begin() const { return exceptions_; }

 private:
  void check_ours() const;
  void check_can_follow() const;
  void override_even_batches(bool even);
  /// Takes part in the others' collectives until none has batches left; true if this rank was among the last.
  bool follow_the_others();
  void become_that_of_the_last(bool among_last);

  Training& training_;
  std::vector<ModelBase> models_;
  parallel::UnevenInputs uneven_;
  bool enabled_ = false;
  struct Overridden {
    LoaderBase loader;
    bool even;
  };
  std::vector<Overridden> overridden_;
  int exceptions_;
};

}  // namespace hortator::accelerator
