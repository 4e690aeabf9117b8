#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/hdf5/library.hpp"
#include "tools/doctor/finding.hpp"

namespace hortator::tools::doctor {

/// What Hortator was built with, and what this process has loaded in its place.
struct Libraries {
  std::string libtorch_built = "";
  std::string libtorch_loaded = "";
  std::string torch_in_path = "";  ///< the folder of LD_LIBRARY_PATH that holds a LibTorch
  std::string mpi_built = "";
  std::string mpi_loaded = "";
  std::vector<std::string> mpi_files = {};
  std::string mpirun = "";      ///< what the one on PATH says of itself; empty: there is none
  std::string own_mpirun = "";  ///< what `hortator launch` starts ranks with; empty: there is nothing
  std::string hdf5_built = "";
  formats::Hdf5Library hdf5_loaded = {};
  std::string cuda_toolkit = "";   ///< "13.0"; empty: built without CUDA
  std::string nvidia_driver = "";  ///< "580.65.06"; empty: none is loaded
  std::string nccl_built = "";     ///< "2.30.7"
  std::string nccl_loaded = "";
};

Findings judge(const Libraries& libraries);

Libraries look_at_libraries();

/// "580.65.06" of the first line of /proc/driver/nvidia/version
std::string parse_driver(const std::string& line);

}  // namespace hortator::tools::doctor
