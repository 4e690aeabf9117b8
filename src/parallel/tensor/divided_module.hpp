#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <hortator/parallel/tensor_plan.hpp>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mpi/communicator.hpp"
#include "parallel/tensor/divided_tensor.hpp"

namespace hortator::parallel {

/// A module whose parameters are divided among the ranks of a tensor group: each has this rank's part.
class DividedModule {
 public:
  struct DividedParameter {
    std::string name;
    at::Tensor parameter;  ///< this rank's part
    Division division;
    Sizes part;  ///< the sizes of each rank's part
  };
  /// Gives a whole parameter its values. Returns false if it gets them later: make_part() takes its part then. It may
  /// drop a parameter of another stage (StagedModule), which is not divided.
  using Settle = std::function<bool(const at::Tensor& parameter)>;

  /// Throws UsageError if `plan` does not fit the module, or if parameters of it are divided already. Does not
  /// communicate.
  static void check(const torch::nn::Module& module, const TensorPlan& plan, int ranks);
  /// Throws UsageError if parameters of the module are divided already. Does not communicate.
  static void check_undivided(const torch::nn::Module& module);
  /// The parameters must be whole, and the same on all ranks. Throws UsageError, before any change, as check() does.
  /// Calls `settle` with each parameter, in the module's order, before its part is taken: two whole parameters that
  /// were made in it are never in memory at once, if they are divided.
  DividedModule(torch::nn::Module& module, const TensorPlan& plan, SharedRanks ranks, const Settle& settle = {});

  /// The same for these parameters of the module, all divided alike.
  DividedModule(torch::nn::Module& module, const std::vector<at::Tensor>& parameters, const Division& division,
                SharedRanks ranks, const Settle& settle = {});

  /// Whether a parameter has the sizes of its part and no values yet. Operators that read it throw.
  bool awaits_part(const at::Tensor& parameter) const { return wholes_.contains(parameter.unsafeGetTensorImpl()); }
  /// Gives a parameter that awaits it its part. `settle` gives the whole parameter, which exists until then, its
  /// values.
  void make_part(const at::Tensor& parameter, const std::function<void(const at::Tensor& whole)>& settle);

  /// Each divided parameter once.
  const std::vector<DividedParameter>& parameters() const { return parameters_; }
  /// How a parameter is divided; null if it is not.
  const DividedParameter* find(const at::Tensor& parameter) const;
  const TensorRanks& ranks() const { return *ranks_; }
  const SharedRanks& shared_ranks() const { return ranks_; }

  /// Throws UsageError, naming the parameter, if one has not been this rank's part since: module->to() and set_data()
  /// give it other memory.
  void check_untouched() const;
  /// Gives the module whole parameters, and gradients, back for good. If one rank of `host`, which contains these
  /// ranks, fails, all throw. @collective over `host`
  void restore(const mpi::Communicator& host) const;
  /// Gives the module whole parameters until take_back(). If one rank of `host`, which contains these ranks, fails, all
  /// throw, and the module has its parts. @collective over `host`
  void lend_together(const mpi::Communicator& host);
  /// Gives the module parameters of the whole sizes, without values and memory, until take_back(). Local.
  void lend_shapes();
  bool is_lent() const { return is_lent_; }
  /// Gives the module parts again: those of the whole parameters if changes are kept, otherwise those from before. Does
  /// nothing unless parameters are lent. Local.
  void take_back(bool keep_changes);

 private:
  /// Each parameter under all of its names, and the division of each name.
  void divide(const std::vector<std::pair<std::string, at::Tensor>>& all,
              const std::vector<std::optional<Division>>& divisions, const Settle& settle);
  void divide(const std::string& name, const at::Tensor& parameter, const Division& division, bool has_values);
  template <typename Whole>
  void lend(const Whole& whole);
  bool is_part(const DividedParameter& one) const;
  void restore(const DividedParameter& one, bool with_gradient) const;  ///< @collective
  void mark() const;

  std::vector<DividedParameter> parameters_;
  std::unordered_map<const void*, at::Tensor> wholes_;  ///< of parameters that await their parts, by TensorImpl
  SharedRanks ranks_;
  bool is_lent_ = false;
  std::vector<at::Tensor> lent_;  ///< the parts, while the module has whole parameters
};

/// While it lives, the parameters of a divided module have their whole sizes, and no values.
class WholeShapes {
 public:
  /// `divided` may be null.
  explicit WholeShapes(DividedModule* divided) : divided_(divided) {
    if (divided_ != nullptr) divided_->lend_shapes();
  }
  ~WholeShapes() {
    if (divided_ != nullptr) divided_->take_back(/*keep_changes=*/false);
  }
  WholeShapes(const WholeShapes&) = delete;
  WholeShapes& operator=(const WholeShapes&) = delete;

 private:
  DividedModule* divided_;
};

/// The plan that the module, or a module in it, brings (HasTensorPlan). Throws UsageError if none does.
TensorPlan plan_of(torch::nn::Module& module);

}  // namespace hortator::parallel
