#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "mpi/agree.hpp"
#include "paging/pager.hpp"
#include "paging/stores/file_store.hpp"
#include "parallel/zero/absent_arrays.hpp"

namespace hortator::parallel {

/// Where arrays are between their uses.
struct ArrayPlacement {
  std::filesystem::path folder = {};  ///< of an unnamed file; empty: they stay in the device's or the host's memory
  std::uint64_t resident_bytes = 0;   ///< of these arrays in memory at a time; 0: what reading ahead needs
  c10::Device device = at::kCPU;      ///< in whose memory they are used
  bool in_host = false;               ///< used on a device, and kept in page-locked memory of the host; no folder

  bool is_offloaded() const { return in_host || !folder.empty(); }
};

/// Arrays in a file, or for a device in the host's memory, that are in the device's memory only while operators use
/// them (pager.hpp). They are made one after the other, so that no two of them are in memory at once. In a common file
/// each rank writes its part of each array; it sees what the others have written after forget().
class DiskArrays {
 public:
  using Spec = ArraySpec;
  /// Allocates their space on the disk, or throws FileError. `placement` must be offloaded. `common`: used instead of a
  /// file of its own.
  DiskArrays(const std::vector<Spec>& specs, ArrayPlacement placement,
             std::optional<paging::CommonScratch> common = {});
  /// The size of a file of these arrays, in bytes.
  static std::uint64_t room_for(const std::vector<Spec>& specs);
  /// Must be called once, before the arrays are used. `values` gives array number i, which is uninitialised, its first
  /// values; `written` is called for it when all ranks have them in the file. When one rank cannot write an array, all
  /// throw, and the arrays after it get no values; those before it can be used.
  void fill(
      const std::function<void(std::size_t i, const at::Tensor& array)>& values,
      const std::function<void(std::size_t i)>& written = [](std::size_t) {},
      const mpi::AllOrNone& all_or_none = [](const auto& work) { work(); });

  const at::Tensor& array(std::size_t i) const { return arrays_[i].tensor; }
  /// Elements of array number i from `begin` on.
  at::Tensor range(std::size_t i, std::int64_t begin, at::IntArrayRef sizes) const;
  /// Writes all changes to the file.
  void publish_changed() { pager_->publish_changed(); }
  /// Drops what is in memory: the next use reads the file.
  void forget() { pager_->forget_all(); }
  paging::PageTraffic::Counters counters() const { return pager_->counters(); }

 private:
  void keep(std::size_t i, const std::function<void(std::size_t, const at::Tensor&)>& values,
            const mpi::AllOrNone& all_or_none);

  ArrayPlacement placement_;
  std::vector<paging::NamedTensor> arrays_;
  std::unique_ptr<paging::Store> store_;  ///< the pager's, once they are filled
  std::unique_ptr<paging::Pager> pager_;
};

}  // namespace hortator::parallel
