#pragma once

#include <torch/data/example.h>

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <memory>
#include <span>

namespace hortator {

namespace data {
struct MnistFiles;
}

/// MNIST or a data set in its format (Fashion-MNIST, KMNIST, EMNIST): a file of images and a file of labels, both
/// uncompressed. An image is float32 [1, height, width] from 0 to 1, a label is int64.
class HORTATOR_API Mnist {
 public:
  Mnist(const std::filesystem::path& images, const std::filesystem::path& labels);

  std::int64_t size() const;
  torch::data::Example<> get(std::int64_t sample) const;
  torch::data::Example<> get_batch(std::span<const std::int64_t> samples) const;

 private:
  std::shared_ptr<const data::MnistFiles> files_;
};

}  // namespace hortator
