#pragma once

#include <filesystem>
#include <hortator/state_dict.hpp>
#include <map>
#include <string>

#include "io/hdf5_dataset.hpp"

namespace hortator::checkpoint {

/// All that a checkpoint's file says, without the tensors' bytes. Names are full paths in the file.
struct Contents {
  std::int64_t world_size = 0;
  StateDict values = {};
  std::map<std::string, io::StoredTensor> tensors = {};
};

/// Throws, naming the file and the reason, for what is no whole checkpoint of this format.
Contents read_contents(const std::filesystem::path& file);

}  // namespace hortator::checkpoint
