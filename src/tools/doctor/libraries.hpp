#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/hdf5/library.hpp"
#include "tools/doctor/finding.hpp"

namespace hortator::tools::doctor {

/// The libraries that Hortator was built with, and those that this process has loaded.
struct LibraryFacts {
  std::string libtorch_built = "";
  std::string libtorch_loaded = "";
  std::string torch_in_path = "";  ///< the folder in LD_LIBRARY_PATH with a LibTorch
  std::string mpi_built = "";
  std::string mpi_loaded = "";
  std::vector<std::string> mpi_files = {};
  std::string mpirun = "";      ///< what mpirun --version prints; empty: none on PATH
  bool serves_mpirun = false;   ///< this build has a library for its MPI, which is another one
  std::string own_mpirun = "";  ///< the launcher of `hortator launch`; empty: none
  std::string hdf5_built = "";
  formats::Hdf5Library hdf5_loaded = {};
  std::string cuda_toolkit = "";        ///< "13.0"; empty: built without CUDA
  std::string nvidia_driver = "";       ///< "580.65.06"; empty: none is loaded
  std::string cuda_runtime_built = "";  ///< LibTorch's: "13.2"; empty: it has no CUDA
  std::string cuda_runtime_loaded = "";
  std::string cuda_runtime_in_path = "";  ///< the folder in LD_LIBRARY_PATH with a CUDA runtime
  std::string nccl_built = "";            ///< "2.30.7"
  std::string nccl_loaded = "";
  std::string nccl_in_path = "";  ///< the folder in LD_LIBRARY_PATH with an NCCL
};

Findings judge(const LibraryFacts& libraries);

LibraryFacts inspect_libraries();

/// "580.65.06" of the first line of /proc/driver/nvidia/version
std::string parse_driver(const std::string& line);

}  // namespace hortator::tools::doctor
