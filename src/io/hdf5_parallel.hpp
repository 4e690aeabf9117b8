#pragma once

#include <filesystem>

#include "base/shard.hpp"
#include "io/hdf5_handle.hpp"
#include "io/tensor_spec.hpp"
#include "mpi/communicator.hpp"

/// HDF5 over MPI-IO: all ranks have the file open. An error of the disk on one rank can leave the others waiting inside
/// HDF5 for ever; who cannot afford that writes with RawFile.
namespace hortator::io {

/// A new file in the same format and with the same alignment as those in memory. @collective
File create_file_together(const mpi::Communicator& comm, const std::filesystem::path& path);

/// A run of the elements of a tensor of this shape and type, from host memory, by this rank alone. Larger ones than
/// 1 GiB go in several transfers: HDF5 before 1.12.3 fails beyond 2 GiB.
void write_elements(const File& file, const std::string& dataset, const TensorSpec& spec, shard::Range elements,
                    const void* data);

}  // namespace hortator::io
