#pragma once

#include <hortator/datasets/loader_base.hpp>
#include <hortator/parallel/gradient_scopes.hpp>
#include <vector>

#include "parallel/uneven/uneven_inputs.hpp"

namespace hortator::accelerator {

class Training;

/// Implements JoinUnevenInputs. As in Hugging Face Accelerate, does nothing while even_batches is on, by the options or
/// for this scope.
class Joining {
 public:
  Joining(Training& training, std::vector<ModelBase> models, const JoinOptions& options);
  ~Joining();
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;

  /// Follows the other ranks until none has batches left, then takes over the state of the last. @collective
  void leave();
  int exceptions_at_begin() const { return exceptions_; }

 private:
  void check_can_follow() const;
  void override_even_batches(bool even);
  /// Takes part in the others' collectives until none has batches left; returns whether this rank was among the last.
  bool follow_the_others();
  void copy_from_last(bool among_last);

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
