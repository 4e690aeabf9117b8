#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shard/pager.hpp"

namespace hortator::shard {

/// Where arrays are while nobody uses them.
struct Residence {
  std::filesystem::path folder = {};  ///< for a file without a name; empty: they stay in memory
  std::uint64_t resident_bytes = 0;   ///< of these arrays in memory at a time; 0: what reading ahead needs
};

/// Arrays of this rank in a file, in memory only while operators use them (pager.hpp). Each is made in memory alone, so
/// that no two of them are there at once.
class DiskArrays {
 public:
  struct Spec {
    std::string name = {};  ///< for those who look for its pointer while it is absent
    std::int64_t elements = 0;
    at::ScalarType type = at::kFloat;
  };
  /// Takes their room on the disk, or throws FileError. `home` has a folder.
  DiskArrays(std::vector<Spec> specs, Residence home);
  /// `values` gives array number i, which is uninitialised, its first values. Once, before they are used.
  void fill(const std::function<void(std::size_t i, const at::Tensor& array)>& values);

  const at::Tensor& array(std::size_t i) const { return arrays_[i]; }
  /// Some of its elements, as a tensor that is no view: LibTorch refuses to detach those in place.
  at::Tensor stretch(std::size_t i, std::int64_t begin, at::IntArrayRef sizes) const;
  PageTraffic::Counters counters() const { return pager_->counters(); }

 private:
  std::vector<Spec> specs_;
  Residence home_;
  std::vector<at::Tensor> arrays_;
  std::unique_ptr<Store> store_;  ///< the pager's, once they are filled
  std::unique_ptr<Pager> pager_;
};

/// Elements of `memory` from `begin` on, as a tensor that is no view; paged if `memory` is.
at::Tensor stretch_of(const at::Tensor& memory, std::int64_t begin, at::IntArrayRef sizes);

}  // namespace hortator::shard
