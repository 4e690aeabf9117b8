#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"
#include "parallel/tensor/divided_module.hpp"
#include "step/model/model_core.hpp"

/// Tensors divided among tensor ranks, and experts divided among ranks, in checkpoints. They are stored under the names
/// and shapes of the whole tensors, so that any mesh can read them. To write them, the ranks of a group exchange their
/// parts for ranges of elements.
namespace hortator::accelerator {

class Training;

/// How a parameter of a prepared model is divided.
struct DivisionInModel {
  const parallel::DividedModule* module = nullptr;  ///< null if it is not
  const parallel::DividedModule::DividedParameter* divided = nullptr;

  explicit operator bool() const { return module != nullptr; }
  /// The sizes of the whole parameter.
  parallel::Sizes whole_sizes() const;
  /// Whether a tensor is one that an optimizer keeps for each element of this rank's part.
  bool has_sizes_of_part(const at::Tensor& tensor) const { return tensor.sizes() == divided->part; }
};

DivisionInModel find_division(const Training& training, const at::Tensor& parameter);
/// The same for the parameter with this name in the optimizer's state: "state/<parameter>/<moment>".
DivisionInModel find_division(const Training& training, const std::string& path);

/// The prepared model of a module; null if it is not prepared.
std::shared_ptr<step::ModelCore> find_model(const Training& training, const torch::nn::Module& module);

/// The type and shape of the whole tensor. `tensor`, a parameter, is this rank's part of it.
formats::TensorSpec whole_spec(const Training& training, const at::Tensor& tensor);

/// A tensor that is divided: this rank's part must be joined with those of other ranks before it can be written.
struct UnjoinedTensor {
  std::string name;
  DivisionInModel division;
  at::Tensor mine = {};                 ///< the part, or ZeRO's slice of it
  parallel::FlatParameter sliced = {};  ///< as which the part is sliced; empty if `mine` is the part
};

/// A parameter of a model whose layers are on several ranks.
struct StagedParameter {
  const parallel::StagedModule* module = nullptr;  ///< null if all ranks have it
  std::string name = {};                           ///< in the module

  explicit operator bool() const { return module != nullptr; }
};

/// A snapshot before the ranks have exchanged anything.
struct SnapshotDraft {
  checkpoint::Snapshot snapshot = {};
  std::map<std::string, StagedParameter> staged = {};  ///< of entries whose names do not give them
  std::vector<UnjoinedTensor> unjoined = {};
  std::map<const void*, at::Tensor> buffers =
      {};  ///< rank 0's, by the TensorImpl of this rank's, where they may differ
};

/// What this rank has of a parameter of a model that is divided, and maybe sharded. The parameter must not be lent.
UnjoinedTensor unjoined(const std::string& name, const step::ModelCore& model,
                        const parallel::DividedModule::DividedParameter& divided);
/// The whole tensor. @collective along the axis tensor, and along shard where it is sliced
at::Tensor joined(const UnjoinedTensor& one);
/// Gives each unjoined tensor its place in the snapshot, with the elements that this rank writes. One whole tensor is
/// in memory at a time. On an error all ranks throw. @collective
void join_together(SnapshotDraft& draft, Training& training);

/// Reads elements of this rank's part, given by their positions in it, as a tensor of one dimension.
at::Tensor read_own_elements(const checkpoint::Reader& reader, const std::string& name, const DivisionInModel& division,
                             core::Range of_part);
/// Reads this rank's part of a whole tensor.
at::Tensor read_own_part(const checkpoint::Reader& reader, const std::string& name, const DivisionInModel& division);

}  // namespace hortator::accelerator
