#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <hortator/parallel/tensor_plan.hpp>
#include <memory>
#include <string>
#include <vector>

#include "parallel/tensor/divided_tensor.hpp"

namespace hortator::parallel {

/// A module whose parameters are divided among the ranks of a tensor group: each has this rank's part.
class DividedModule {
 public:
  struct DividedParameter {
    std::string name;
    at::Tensor parameter;  ///< this rank's part
    Division division;
  };

  /// The parameters must be whole, and the same on all ranks. Throws UsageError, before any change, if the plan does
  /// not fit. Does not communicate.
  DividedModule(torch::nn::Module& module, const TensorPlan& plan, SharedRanks ranks);

  /// Each divided parameter once.
  const std::vector<DividedParameter>& parameters() const { return parameters_; }
  /// How a parameter is divided; null if it is not.
  const DividedParameter* find(const at::Tensor& parameter) const;
  const TensorRanks& ranks() const { return *ranks_; }
  const SharedRanks& shared_ranks() const { return ranks_; }

  /// Marks the parameters as divided again, after their data was replaced.
  void mark() const;
  /// Gives the module whole parameters, and gradients, back for good. @collective
  void restore() const;
  /// Gives the module whole parameters until take_back(). @collective
  void lend();
  /// Gives the module parts again: those of the whole parameters if changes are kept, otherwise those from before. Does
  /// nothing unless parameters are lent.
  void take_back(bool keep_changes);

 private:
  std::vector<DividedParameter> parameters_;
  SharedRanks ranks_;
  std::vector<at::Tensor> lent_;  ///< the parts, while the module has whole parameters
};

/// While it lives, a module that may be divided has whole parameters. Changes of them are kept if `keep_changes`.
class WholeModule {
 public:
  /// `divided` may be null. @collective
  explicit WholeModule(DividedModule* divided, bool keep_changes = false)
      : divided_(divided), keep_changes_(keep_changes) {
    if (divided_ != nullptr) divided_->lend();
  }
  ~WholeModule() {
    if (divided_ != nullptr) divided_->take_back(keep_changes_);
  }
  WholeModule(const WholeModule&) = delete;
  WholeModule& operator=(const WholeModule&) = delete;

 private:
  DividedModule* divided_;
  bool keep_changes_;
};

/// The plan that the module, or a module in it, brings (HasTensorPlan). Throws UsageError if none does.
TensorPlan plan_of(torch::nn::Module& module);

}  // namespace hortator::parallel
