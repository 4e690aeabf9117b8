#pragma once

#include <string>

#include "accelerator/training/training.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"

/// Tensors divided among tensor ranks in checkpoints. They are stored under the names and shapes of the whole tensors,
/// so that any mesh can read them. To write them, the ranks of a group exchange their parts for ranges of elements.
namespace hortator::accelerator {

/// How a parameter of a prepared model is divided.
struct DivisionInModel {
  const parallel::DividedModule* module = nullptr;  ///< null if it is not
  const parallel::DividedModule::DividedParameter* divided = nullptr;

  explicit operator bool() const { return module != nullptr; }
  /// The sizes of the whole parameter.
  parallel::Sizes whole_sizes() const;
  /// Whether a tensor is one that an optimizer keeps for each element of this rank's part.
  bool has_sizes_of_part(const at::Tensor& tensor) const { return tensor.sizes() == divided->parameter.sizes(); }
};

DivisionInModel find_division(const Training& training, const at::Tensor& parameter);
/// Of the parameter with this name in the optimizer's state: "state/<parameter>/<moment>".
DivisionInModel find_division(const Training& training, const std::string& path);

/// How a prepared module is divided; null if it is not.
parallel::DividedModule* divided_module(const Training& training, const torch::nn::Module& module);

/// The type and shape of the whole tensor of which `tensor`, a parameter, is this rank's.
formats::TensorSpec whole_spec(const Training& training, const at::Tensor& tensor);

/// Describes a tensor of which this rank has `part`, divided as its parameter is. @collective along the axis tensor
checkpoint::ShardedTensor divided_share(const Training& training, const DivisionInModel& division,
                                        const at::Tensor& part);

/// Reads this rank's part of a whole tensor.
at::Tensor read_own_part(const checkpoint::Reader& reader, const std::string& name, const DivisionInModel& division);

}  // namespace hortator::accelerator
