#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/torch/pickle/source.hpp"
#include "weights/distributed_weights.hpp"

namespace hortator::accelerator {

/// A nested state dict that Python saved in parts, with torch.distributed.checkpoint: FSDP's optimizers.
class DistributedState final : public formats::PickleSource {
 public:
  explicit DistributedState(const std::filesystem::path& folder);

  const std::filesystem::path& path() const override { return parts_.path(); }
  const formats::PickleValue& value() const override { return value_; }
  at::Tensor get(const formats::PickledTensor& tensor) const override { return parts_.tensor(tensor.storage); }

 private:
  weights::DistributedWeights parts_;
  formats::PickleValue value_;
};

}  // namespace hortator::accelerator
