#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::formats {

/// A tensor whose elements are in datasets of its name in several files of one folder.
struct ViewedTensor {
  struct FileDataset {
    std::string file = "";
    TensorSpec spec = {};  ///< of the dataset in that file
    core::Range elements = {};
  };

  std::string name = "";
  TensorSpec spec = {};
  std::vector<FileDataset> parts = {};
};

/// Creates a file in the same folder with a virtual dataset for each of them. It holds no elements itself.
void write_view(const std::filesystem::path& path, const std::vector<ViewedTensor>& tensors);

}  // namespace hortator::formats
