#pragma once

#include <torch/data/example.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <hortator/datasets/image_folder.hpp>
#include <hortator/export.hpp>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace hortator {

namespace data {
class TarIndex;
}

/// A sample of a WebDataset: the files of an archive whose names differ only in their extensions.
struct TarSample {
  std::string key = {};                           ///< the path up to the first point of the file's name
  std::map<std::string, std::string> files = {};  ///< content by extension, in lower case: "jpg", "cls", "seg.png"

  auto fields() { return std::tie(key, files); }
};

/// The samples of tar archives in the layout of WebDataset: the files of a sample follow each other, and hidden files
/// are skipped. Any sample can be read, so that shuffling, resuming and the distribution over ranks are those of other
/// data sets, and not limited to a buffer. The constructor reads the headers of all archives once on each rank and
/// keeps 16 bytes a sample; 64 archives at most are open at a time. Errors name the archive and the file: an archive
/// that is truncated, damaged, compressed, or has links; two files of a sample with one extension.
class HORTATOR_API TarShards {
 public:
  explicit TarShards(const std::vector<std::filesystem::path>& archives);

  std::int64_t size() const;
  TarSample get(std::int64_t sample) const;
  /// The archive that holds the sample.
  const std::filesystem::path& archive(std::int64_t sample) const;

 private:
  std::shared_ptr<const data::TarIndex> index_;
};

/// The paths that a pattern with one range means, as WebDataset writes it: "train-{000..127}.tar". A path without
/// braces means itself. Throws UsageError for other braces. Pure.
HORTATOR_API std::vector<std::filesystem::path> shard_paths(const std::string& pattern);

/// Images with classes in tar shards: each sample has an image (png, jpg or jpeg) and a class (cls), a whole number as
/// text. Other files of a sample are ignored. The transform of the options is called by the reading threads.
class HORTATOR_API TarImages {
 public:
  explicit TarImages(TarShards shards, ImageFolderOptions options = {});

  std::int64_t size() const { return shards_.size(); }
  torch::data::Example<at::Tensor, std::int64_t> get(std::int64_t sample) const;

 private:
  TarShards shards_;
  ImageFolderOptions options_;
};

}  // namespace hortator
