#pragma once

#include <filesystem>
#include <hortator/bigmodel/big_models.hpp>
#include <vector>

#include "accelerator/dispatch/placed_tensors.hpp"
#include "weights/filling.hpp"

/// Gives the tensors of a module memory where they are placed.
namespace hortator::accelerator {

/// Throws UsageError for a device that this process does not see.
void require_devices(const DeviceMap& map);

/// Throws UsageError if a tensor is placed on disk and there is no folder for it.
void require_offload_folder(const std::vector<PlacedTensor>& tensors, const std::filesystem::path& folder);

/// The fillings that are read now, and those of the parts on disk.
struct Division {
  std::vector<weights::Filling> now = {};
  std::vector<weights::Filling> later = {};
  std::vector<PlacedTensor> on_disk = {};  ///< the tensors of `later`, in its order
};

/// Divides fillings by the places of their tensors. Tensors that none fills keep their values, on the host if they were
/// to be on disk. Throws UsageError if one has no values.
Division divide(std::vector<PlacedTensor>& tensors, const std::vector<weights::Filling>& fillings);

/// Gives the tensors that will be filled memory of their types on their devices; those on disk get none.
void prepare_all(const std::vector<PlacedTensor>& tensors, const Division& division);

/// Moves a tensor with its values to its place, on the host if that is the disk. Throws UsageError if it has none.
void keep_values(PlacedTensor& one);

}  // namespace hortator::accelerator
