#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "mpi/all_or_none.hpp"
#include "paging/pager.hpp"
#include "paging/stores/file_store.hpp"
#include "parallel/zero/absent_arrays.hpp"

namespace hortator::parallel {

/// Where arrays are while nobody uses them.
struct Residence {
  std::filesystem::path folder = {};  ///< for a file without a name; empty: they stay in memory, or in the host's
  std::uint64_t resident_bytes = 0;   ///< of these arrays in memory at a time; 0: what reading ahead needs
  c10::Device device = at::kCPU;      ///< in whose memory they are used
  bool in_host = false;               ///< of a device, without a folder: in page-locked memory of the host

  bool is_elsewhere() const { return in_host || !folder.empty(); }
};

/// Arrays in a file, or of a device in the host's memory, in its own only while operators use them (pager.hpp). Each is
/// made there alone, so that no two of them are there at once. Of a file in common each rank writes its part of each
/// array: what others have written to theirs a rank sees after forget().
class DiskArrays {
 public:
  using Spec = ArraySpec;
  /// Takes their room on the disk, or throws FileError. `home` is elsewhere; `common`: in place of a file there.
  DiskArrays(const std::vector<Spec>& specs, Residence home, std::optional<paging::CommonScratch> common = {});
  /// What a file of these takes, in bytes.
  static std::uint64_t room_for(const std::vector<Spec>& specs);
  /// `values` gives array number i, which is uninitialised, its first values; once `written` is called for it they are
  /// safe in the file, on all ranks. Once, before they are used. When one rank cannot write one of them, all throw, and
  /// those after it get none. What was written can be used.
  void fill(
      const std::function<void(std::size_t i, const at::Tensor& array)>& values,
      const std::function<void(std::size_t i)>& written = [](std::size_t) {},
      const mpi::AllOrNone& all_or_none = [](const auto& work) { work(); });

  const at::Tensor& array(std::size_t i) const { return arrays_[i].tensor; }
  /// Some of its elements.
  at::Tensor stretch(std::size_t i, std::int64_t begin, at::IntArrayRef sizes) const;
  /// What was written to them is in the file.
  void publish_changed() { pager_->publish_changed(); }
  /// The next to use them gets what the file holds then.
  void forget() { pager_->forget_all(); }
  paging::PageTraffic::Counters counters() const { return pager_->counters(); }

 private:
  void keep(std::size_t i, const std::function<void(std::size_t, const at::Tensor&)>& values,
            const mpi::AllOrNone& all_or_none);

  Residence home_;
  std::vector<paging::NamedTensor> arrays_;
  std::unique_ptr<paging::Store> store_;  ///< the pager's, once they are filled
  std::unique_ptr<paging::Pager> pager_;
};

}  // namespace hortator::parallel
