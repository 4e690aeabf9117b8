#pragma once

#include <torch/data/example.h>

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <memory>
#include <span>
#include <vector>

namespace hortator {

namespace data {
struct CifarFiles;
}

/// The data set, and for CIFAR-100 its labels: 100 fine or 20 coarse ones.
enum class CifarKind { cifar10, cifar100, cifar100_coarse };

/// CIFAR-10 or CIFAR-100 in the binary version, from one or several files. An image is float32 [3, 32, 32] from 0 to 1,
/// a label is int64.
class HORTATOR_API Cifar {
 public:
  Cifar(const std::vector<std::filesystem::path>& files, CifarKind kind);

  std::int64_t size() const;
  torch::data::Example<> get(std::int64_t sample) const;
  torch::data::Example<> get_batch(std::span<const std::int64_t> samples) const;

 private:
  std::shared_ptr<const data::CifarFiles> files_;
};

}  // namespace hortator
