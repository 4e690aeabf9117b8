#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "formats/file/file_pool.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "formats/torch/deepspeed/zero_files.hpp"
#include "weights/deepspeed/zero_folder.hpp"

namespace hortator::weights {

/// A rank's part of a flat array, in its file.
struct StoredArray {
  std::size_t file = 0;  ///< its number in the pool
  std::uint64_t offset = 0;
  formats::TensorSpec spec = {};
};

/// [rank][array]: all ranks have the same number of arrays.
using ArraysOfRanks = std::vector<std::vector<StoredArray>>;

/// What the ranks' files of the optimizer hold.
struct RankArrays {
  formats::ZeroArrays optimizer = {};                ///< rank 0's; tensors of one element are numbers
  std::map<std::string, ArraysOfRanks> arrays = {};  ///< "": the fp32 values of parameters; "exp_avg": moments
};

/// Reads the pickles of the files and checks that they are of one save. Adds the files to `files`. Throws FileError,
/// naming the file, otherwise.
RankArrays read_rank_arrays(const ZeroFolder& folder, formats::FilePool& files);

}  // namespace hortator::weights
