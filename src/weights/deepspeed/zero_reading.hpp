#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "formats/file/file_pool.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "formats/torch/deepspeed/zero_files.hpp"
#include "weights/deepspeed/zero_folder.hpp"

namespace hortator::weights {

/// A range of a tensor's elements, in row-major order in a file.
struct StoredSlice {
  std::size_t file = 0;      ///< its number in the pool
  std::uint64_t offset = 0;  ///< in the file, of the first element
  core::Range elements = {};
};

struct StoredTensor {
  formats::TensorSpec spec = {};
  std::vector<StoredSlice> slices = {};  ///< in the order of the elements
};

/// A parameter that was trained.
struct ZeroParameter {
  std::string name = {};
  std::size_t array = 0;  ///< the flat array that holds it: in ZeRO 3, its first part
  std::map<std::string, StoredTensor> moments = {};
};

/// What the files of a checkpoint of DeepSpeed's ZeRO say about their tensors.
struct ZeroContents {
  std::vector<std::string> names = {};               ///< of the model's tensors, in Python's order
  std::map<std::string, StoredTensor> tensors = {};  ///< trained parameters in fp32
  std::map<std::string, std::string> shared = {};    ///< further names of tied parameters, and the first ones
  std::vector<ZeroParameter> parameters = {};
  formats::ZeroArrays optimizer = {};  ///< rank 0's; tensors of one element are numbers
};

/// Reads the pickles of all files and checks that they fit together. Adds the files to `files`, in which the tensors'
/// positions are. Throws FileError, naming the file, otherwise.
ZeroContents read_zero_folder(const ZeroFolder& folder, formats::FilePool& files);

}  // namespace hortator::weights
