#pragma once

#include <mpi.h>

#include <filesystem>
#include <functional>
#include <string>

#include "core/range.hpp"
#include "formats/hdf5/handle.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "mpi/communicator.hpp"

/// HDF5 over MPI-IO: all ranks have the file open. An error of the disk on one rank can leave the others waiting inside
/// HDF5 for ever; who cannot afford that writes with RawFile.
namespace hortator::formats {

/// While it lives: files that are opened meanwhile call `fail` on this rank as soon as a call of MPI-IO fails here.
/// HDF5 may then wait for other ranks for ever, and never tell. One at a time.
class MpiFileFailures {
 public:
  explicit MpiFileFailures(const std::function<void(const std::string& problem)>& fail);  ///< is borrowed
  ~MpiFileFailures();
  MpiFileFailures(const MpiFileFailures&) = delete;
  MpiFileFailures& operator=(const MpiFileFailures&) = delete;

 private:
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

/// A new file in the same format and with the same alignment as those in memory. @collective
File create_file_together(const mpi::Communicator& comm, const std::filesystem::path& path);

/// A run of the elements of a tensor of this shape and type, from host memory, by this rank alone. Larger ones than
/// 1 GiB go in several transfers: HDF5 before 1.12.3 fails beyond 2 GiB.
void write_elements(const File& file, const std::string& dataset, const TensorSpec& spec, core::Range elements,
                    const void* data);

}  // namespace hortator::formats
