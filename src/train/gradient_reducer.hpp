#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"
#include "train/bucket_plan.hpp"
#include "train/gradient_bucket.hpp"
#include "train/gradient_hook.hpp"

namespace hortator::train {

struct NamedParameter {
  std::string name;
  at::Tensor tensor;
};

/// Averages the gradients of one model over all ranks. Each gradient that backward has accumulated goes into its
/// bucket; buckets start in a fixed order, the same on all ranks, each as soon as it and all before it are full.
class GradientReducer {
 public:
  /// `parameters` in the module's order, each once, all of them requiring gradients. `host` has the same ranks as
  /// `communicator`.
  GradientReducer(std::vector<NamedParameter> parameters, comm::Communicator& communicator,
                  const mpi::Communicator& host, const BucketLimits& limits = {});

  /// After backward: all gradients are averages. Nothing happens if backward did not reach this model. When a parameter
  /// got no gradient on some rank, all ranks throw and name it. @collective
  void finish();
  /// No more calls from backward: the communicator is about to go.
  void retire() { hooks_.clear(); }

 private:
  struct Place {
    std::size_t bucket;
    std::size_t slot;
  };
  void on_gradient(std::size_t parameter);
  void start_full_buckets();
  void fill_missing(std::vector<std::string>& missing);
  [[noreturn]] void throw_missing(const std::vector<std::string>& missing) const;

  std::vector<NamedParameter> parameters_;
  comm::Communicator& communicator_;
  const mpi::Communicator& host_;
  std::vector<GradientBucket> buckets_;
  std::vector<Place> places_;        ///< of each parameter
  std::size_t next_bucket_ = 0;      ///< the first that has not started
  bool reached_ = false;             ///< backward has come to this model
  std::vector<GradientHook> hooks_;  ///< last: they call into the rest
};

}  // namespace hortator::train
