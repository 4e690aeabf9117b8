#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

#include "formats/torch/pickle/value.hpp"

namespace hortator::formats {

/// A pickled value of Python, and the elements of its tensors, wherever they are.
class PickleSource {
 public:
  virtual ~PickleSource() = default;

  virtual const std::filesystem::path& path() const = 0;
  /// The whole pickled value.
  virtual const PickleValue& value() const = 0;
  /// Reads a tensor of the value.
  virtual at::Tensor get(const PickledTensor& tensor) const = 0;
};

}  // namespace hortator::formats
