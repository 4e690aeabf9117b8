#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "shard/absent_arrays.hpp"
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
  using Spec = ArraySpec;
  /// Takes their room on the disk, or throws FileError. `home` has a folder.
  DiskArrays(std::vector<Spec> specs, Residence home);
  /// `values` gives array number i, which is uninitialised, its first values; once `written` is called for it they are
  /// safe in the file. Once, before they are used. When one cannot be written, those after it get values all the same
  /// (ranks may exchange them meanwhile), which are not kept; then that is thrown. What was written can be used.
  void fill(
      const std::function<void(std::size_t i, const at::Tensor& array)>& values,
      const std::function<void(std::size_t i)>& written = [](std::size_t) {});

  const at::Tensor& array(std::size_t i) const { return arrays_[i].tensor; }
  /// Some of its elements.
  at::Tensor stretch(std::size_t i, std::int64_t begin, at::IntArrayRef sizes) const;
  PageTraffic::Counters counters() const { return pager_->counters(); }

 private:
  Residence home_;
  std::vector<NamedTensor> arrays_;
  std::unique_ptr<Store> store_;  ///< the pager's, once they are filled
  std::unique_ptr<Pager> pager_;
};

}  // namespace hortator::shard
