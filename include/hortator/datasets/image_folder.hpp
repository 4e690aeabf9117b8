#pragma once

#include <torch/data/example.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <hortator/export.hpp>
#include <memory>
#include <string>
#include <vector>

namespace hortator {

namespace data {
struct ImageFiles;
}

/// Options of ImageFolder.
struct ImageFolderOptions {
  int channels = 3;  ///< 3: red, green, blue; 1: grey. Other images are converted; transparency is dropped
  /// Transforms each image, float32 [channels, height, width] from 0 to 1. If sizes differ, it must make them equal.
  /// Called by the reading threads.
  std::function<at::Tensor(const at::Tensor&)> transform = {};
};

/// A folder with one subfolder for each class, which holds the class's PNG and JPEG files at any depth. Classes and
/// files are sorted by name; hidden ones are skipped. A label is int64.
///
/// The constructor lists the files once on each rank; a file's content is checked when it is read. (Millions of small
/// files are slow on parallel file systems: put them into one HDF5 file there.)
class HORTATOR_API ImageFolder {
 public:
  explicit ImageFolder(const std::filesystem::path& folder, const ImageFolderOptions& options = {});

  std::int64_t size() const;
  const std::vector<std::string>& classes() const;
  torch::data::Example<at::Tensor, std::int64_t> get(std::int64_t sample) const;

 private:
  std::shared_ptr<const data::ImageFiles> files_;
};

}  // namespace hortator
