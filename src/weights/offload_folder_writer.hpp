#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"
#include "weights/weight_source.hpp"

namespace hortator::weights {

/// A tensor for an offload folder.
struct TensorToOffload {
  std::string name = {};          ///< in the folder
  std::string stored = {};        ///< in the source
  formats::TensorSpec spec = {};  ///< as it is written
};

/// Writes tensors of a source to a folder as Accelerate's offload_state_dict() does (OffloadFolderWeights), one after
/// the other. The index comes last, and replaces an older one.
void write_offload_folder(const std::filesystem::path& folder, const WeightSource& source,
                          const std::vector<TensorToOffload>& tensors);

}  // namespace hortator::weights
