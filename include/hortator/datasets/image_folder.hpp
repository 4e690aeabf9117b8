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

/// Of ImageFolder.
struct ImageFolderOptions {
  int channels = 3;  ///< 3: red, green, blue; 1: grey. Images of other kinds are converted, transparency is left out
  /// What is done to each image, float32 [channels, height, width] from 0 to 1: at the least, where sizes differ, made
  /// one size. Called by the threads that read.
  std::function<at::Tensor(const at::Tensor&)> transform = {};
};

/// A folder with a folder for each class, in it and below it the class's PNG and JPEG files. Classes are numbered in
/// the order of their names, files stand in the order of theirs; hidden ones are left out. A label is int64.
///
/// Which files there are is found out once, on each rank; what is in a file shows when it is read. (Millions of small
/// files are slow on parallel file systems: there, put them into one HDF5 file.)
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
