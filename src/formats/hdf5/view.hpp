#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::formats {

/// A tensor whose elements lie in datasets of its own name in several files of one folder.
struct ViewedTensor {
  struct Part {
    std::string file = "";
    TensorSpec spec = {};  ///< of the dataset there
    core::Range elements = {};
  };

  std::string name = "";
  TensorSpec spec = {};
  std::vector<Part> parts = {};
};

/// Makes a file in the same folder that shows each of them as one dataset. It holds no elements itself.
void write_view(const std::filesystem::path& path, const std::vector<ViewedTensor>& tensors);

}  // namespace hortator::formats
