#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "parallel/mesh/rank_group.hpp"
#include "parallel/pipeline/stage_map.hpp"

namespace hortator::parallel {

class OtherStages;

/// Whether a tensor is a parameter that only ranks with other stages have: it has its sizes, and no memory. Operators
/// that read it throw.
bool is_of_other_stage(const at::Tensor& tensor);

/// A module whose parameters are distributed along the pipeline: each rank has those of its own stages.
class StagedModule {
 public:
  struct Named {
    std::string name;
    at::Tensor tensor;
  };

  /// `ranks`: those along the pipeline, in the order of stages. Drops nothing yet. @collective over them
  StagedModule(torch::nn::Module& module, const PipelineShape& shape, const RankGroup& ranks);
  ~StagedModule();
  StagedModule(const StagedModule&) = delete;
  StagedModule& operator=(const StagedModule&) = delete;

  const StageMap& map() const { return map_; }
  /// Each parameter of the module once, with the first of its names.
  const std::vector<Named>& parameters() const { return parameters_; }
  /// Takes the memory of a parameter of another stage; others stay as they are.
  void drop(const at::Tensor& parameter);
  /// The ranks that have the parameter or buffer with this name in the module, ascending.
  const std::vector<int>& ranks_of(const std::string& name) const { return map_.ranks_of.at(name); }
  /// Whether this rank is the first of them.
  bool is_first_with(const std::string& name) const { return ranks_of(name).front() == ranks_.index(); }
  bool has(const std::string& name) const;
  bool has_parameter_named(const std::string& name) const { return all_names_.contains(name); }
  /// Whether a tensor is a parameter of the module.
  bool knows(const at::Tensor& parameter) const { return names_.contains(parameter.unsafeGetTensorImpl()); }
  const std::string& name_of(const at::Tensor& parameter) const { return names_.at(parameter.unsafeGetTensorImpl()); }
  /// The same for a parameter. False for tensors that are not the module's.
  bool is_first_with(const at::Tensor& parameter) const;
  /// The stages that read a parameter of the module, and those of them that this rank has.
  const std::set<int>& stages_of(const at::Tensor& parameter) const {
    return stages_of_.at(parameter.unsafeGetTensorImpl());
  }
  std::vector<int> own_stages_of(const at::Tensor& parameter) const;
  /// The ranks that have a parameter of this rank; null if only this one has it.
  comm::Communicator* ranks_with(const at::Tensor& parameter) const;

  /// The values of a parameter on all ranks: `mine` are those of a rank that has it, and undefined on others.
  /// @collective over the pipeline
  at::Tensor values_on_all(const at::Tensor& parameter, const at::Tensor& mine) const;

  /// Adds the gradients of parameters that several ranks have, on all of these. @collective over the pipeline
  void add_shared_gradients() const;

  /// Gives all ranks the buffers of each stage. @collective over the pipeline
  void share_buffers() const;

  /// Gives each rank all parameters and buffers until take_back(). If one has no memory for them, all throw.
  /// @collective over `all`
  void lend(const mpi::Communicator& all);
  void take_back();
  /// The same for good, unless nothing but this object has parameters of other stages any more. @collective over `all`
  void give_back(const mpi::Communicator& all);
  bool is_lent() const { return is_lent_; }

 private:
  struct Shared {
    std::vector<at::Tensor> parameters;
    std::unique_ptr<comm::Communicator> ranks;  ///< that have them
  };
  void connect_shared();

  RankGroup ranks_;
  PipelineShape shape_;
  StageMap map_;
  std::map<const void*, std::set<int>> stages_of_;  ///< of parameters, which may have several names, by TensorImpl
  std::map<const void*, std::string> names_;        ///< of parameters, the first of each, by TensorImpl
  std::set<std::string> all_names_;                 ///< of all parameters
  std::vector<Named> parameters_, buffers_;         ///< each once
  std::shared_ptr<OtherStages> others_;
  std::vector<Shared> shared_;  ///< by the ranks that have them; only those of this rank
  bool is_lent_ = false;
};

}  // namespace hortator::parallel
