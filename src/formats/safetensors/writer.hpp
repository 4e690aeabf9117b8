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

/// Files of safetensors on their way out: byte for byte what the format's own library writes.
namespace hortator::formats {

/// Where everything lies in a file that is not there yet.
struct SafetensorsPlan {
  struct Place {
    std::string name = {};
    TensorSpec spec = {};
    std::int64_t offset = 0;  ///< of its first byte, in the file
  };

  std::string beginning = {};       ///< the bytes in front of the tensors'
  std::vector<Place> tensors = {};  ///< in the order of their bytes, without a gap
  std::int64_t bytes = 0;           ///< of the whole file
};

/// Larger elements first, equal ones by name. Pure: every rank finds the same. Throws UsageError, naming the tensor,
/// for elements that the format does not know and names that are no UTF-8.
SafetensorsPlan plan_safetensors(const std::map<std::string, TensorSpec>& tensors,
                                 const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

/// A file of that plan under its own name, to be written.
struct SafetensorsOutput {
  std::filesystem::path path = {};  ///< a new one
  SafetensorsPlan plan = {};
};

/// A tensor of the name and kind that a plan has, anywhere and with any strides. Asked for by the ranks that write a
/// part of it, one after the other, and dropped when that part is written.
using TensorSource = std::function<at::Tensor(const std::string& name)>;

/// Some elements of a tensor, as one of one dimension.
struct TensorPart {
  core::Range elements = {};
  at::Tensor values = {};
};
/// Of a tensor that no rank has as a whole, this rank's part; those of all ranks are the whole. Nothing: the source has
/// it. The same tensors on all ranks.
using PartSource = std::function<std::optional<TensorPart>(const std::string& name)>;

/// Makes the files and writes them together: all bytes are dealt to the ranks in equal stretches, so that every rank
/// works however many files there are, but for what each has a part of. Returns when all of it is on the disk; the
/// files' names are not durable yet (sync_folder). On failure all throw, and the files are there, incomplete. `advance`
/// is told this rank's bytes as they are written. @collective
void write_safetensors(const mpi::Communicator& comm, const std::vector<SafetensorsOutput>& files,
                       const TensorSource& source, const std::function<void(std::int64_t)>& advance = {},
                       const PartSource& parts = {});

}  // namespace hortator::formats
