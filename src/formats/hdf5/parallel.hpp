#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "core/range.hpp"
#include "formats/hdf5/handle.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "mpi/communicator.hpp"

/// HDF5 over MPI-IO: all ranks have the file open. An I/O error on one rank can leave the others waiting inside HDF5
/// forever; where that is not acceptable, use RawFile.
namespace hortator::formats {

/// While it exists, files that are opened call `fail` on this rank as soon as an MPI-IO call fails here, because HDF5
/// may then wait for other ranks forever without reporting the error. At most one at a time.
class MpiFileFailures {
 public:
  explicit MpiFileFailures(const std::function<void(const std::string& problem)>& fail);  ///< must outlive this
  ~MpiFileFailures();
  MpiFileFailures(const MpiFileFailures&) = delete;
  MpiFileFailures& operator=(const MpiFileFailures&) = delete;

 private:
  std::uint64_t before_ = 0;  ///< MPI's own handle of the error handler
};

/// Creates a file in the same format and with the same alignment as those in memory. @collective
File create_file_together(const mpi::Communicator& comm, const std::filesystem::path& path);

/// Writes a range of a tensor's elements from host memory, on this rank only. Ranges above 1 GiB take several
/// transfers, since HDF5 before 1.12.3 fails beyond 2 GiB.
void write_elements(const File& file, const std::string& dataset, const TensorSpec& spec, core::Range elements,
                    const void* data);

}  // namespace hortator::formats
