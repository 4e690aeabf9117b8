#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "formats/torch/pickle/source.hpp"
#include "weights/deepspeed/zero_states.hpp"

namespace hortator::accelerator {

/// The optimizer in a checkpoint of DeepSpeed's ZeRO, as the state dict that a Python optimizer of the whole parameters
/// would have, with their names in place of numbers.
class ZeroOptimizer final : public formats::PickleSource {
 public:
  /// `folder` holds *_optim_states.pt. Throws FileError if they have no moments that can be read.
  explicit ZeroOptimizer(const std::filesystem::path& folder);

  const std::filesystem::path& path() const override { return states_.path(); }
  const formats::PickleValue& value() const override { return value_; }
  at::Tensor get(const formats::PickledTensor& tensor) const override;

 private:
  formats::PickleValue state_of(const weights::ZeroParameter& parameter);
  formats::PickleValue group_of(const formats::PickleValue& options) const;

  weights::ZeroStates states_;
  formats::PickleValue value_;
  std::map<std::string, const weights::StoredTensor*> tensors_;  ///< by what `value_` calls their storages
};

}  // namespace hortator::accelerator
