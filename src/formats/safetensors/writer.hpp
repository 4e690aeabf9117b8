#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "mpi/communicator.hpp"

/// Writing of safetensors files, byte for byte as the safetensors library does.
namespace hortator::formats {

/// The layout of a file that is to be written.
struct SafetensorsPlan {
  struct PlannedTensor {
    std::string name = {};
    TensorSpec spec = {};
    std::int64_t offset = 0;  ///< of its first byte, in the file
  };

  std::string beginning = {};               ///< the header with its length
  std::vector<PlannedTensor> tensors = {};  ///< in the order of their bytes, without gaps
  std::int64_t bytes = 0;                   ///< of the whole file
};

/// Plans a file: tensors of larger elements first, equal ones by name. Pure, so every rank computes the same. Throws
/// UsageError, naming the tensor, for types that the format does not have and for names that are not UTF-8.
SafetensorsPlan plan_safetensors(const std::map<std::string, TensorSpec>& tensors,
                                 const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

/// A file to write.
struct SafetensorsOutput {
  std::filesystem::path path = {};  ///< must not exist yet
  SafetensorsPlan plan = {};
};

/// Returns a tensor of the plan, on any device and with any strides. Called by the ranks that write a part of the
/// tensor, and released when that part is written.
using TensorSource = std::function<at::Tensor(const std::string& name)>;

/// A rank's range of a tensor.
struct TensorSlice {
  core::Range elements = {};
  at::Tensor values = {};  ///< of one dimension
};
/// Returns this rank's slice of a tensor that no rank holds as a whole; the slices of all ranks cover it. Returns
/// nothing for tensors that the TensorSource has. Must cover the same tensors on all ranks.
using SliceSource = std::function<std::optional<TensorSlice>(const std::string& name)>;

/// Creates the files and writes them together: all bytes are distributed over the ranks in equal ranges, however many
/// files there are, except that each rank writes its slices. Returns when all bytes are on the disk; the files' names
/// are not durable yet (see sync_folder). On failure all ranks throw, and the files stay, incomplete. `advance`
/// receives the numbers of bytes that this rank writes. @collective
void write_safetensors(const mpi::Communicator& comm, const std::vector<SafetensorsOutput>& files,
                       const TensorSource& source, const std::function<void(std::int64_t)>& advance = {},
                       const SliceSource& slices = {});

}  // namespace hortator::formats
