#include <dlfcn.h>
#include <torch/version.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/loaded_libraries.hpp"
#include "base/text.hpp"
#include "cli/doctor/libraries.hpp"
#include "cli/mpirun.hpp"
#include "cli/programs.hpp"
#include "io/hdf5_library.hpp"
#include "mpi/environment.hpp"
#include "mpi/library.hpp"
#include "runtime/build_identity.hpp"

namespace hortator::cli::doctor {
namespace {

std::string torch_in_path() {
  const char* path = std::getenv("LD_LIBRARY_PATH");
  for (const auto& folder : text::split(path != nullptr ? path : "", ':')) {
    if (!folder.empty() && std::filesystem::exists(std::filesystem::path(folder) / "libtorch_cpu.so")) return folder;
  }
  return "";
}

std::string first_line(const std::string& text) { return text::split(text, '\n').front(); }

std::string driver() {
  std::string line;
  std::getline(std::ifstream("/proc/driver/nvidia/version"), line);
  return parse_driver(line);
}

// Asked by name: builds without CUDA have none, and ask nobody.
std::string loaded_nccl() {
  auto* const found = dlsym(RTLD_DEFAULT, "ncclGetVersion");
  int code = 0;
  if (found == nullptr || reinterpret_cast<int (*)(int*)>(found)(&code) != 0) return "";
  return text::concat(code / 10000, '.', code / 100 % 100, '.', code % 100);
}

}  // namespace

std::string parse_driver(const std::string& line) {
  for (const auto& word : text::split(line, ' ')) {
    const auto parts = text::split(word, '.');
    long long number = 0;
    if (parts.size() >= 2 && text::parse_integer(parts.front(), number) && number >= 100) return word;
  }
  return "";
}

Libraries look_at_libraries() {
  return {.libtorch_built = TORCH_VERSION,
          .libtorch_loaded = runtime::libtorch_version(),
          .torch_in_path = torch_in_path(),
          .mpi_built = mpi::built_library(),
          .mpi_loaded = mpi::library_version(),
          .mpi_files = mpi::loaded_libraries(),
          .mpirun = first_line(output_of("mpirun --version")),
          .own_mpirun = own_mpirun().value_or(launching::Mpirun{.program = ""}).program,
          .hdf5_built = io::built_hdf5_version(),
          .hdf5_loaded = io::loaded_hdf5(),
          .cuda_toolkit = HORTATOR_CUDA_TOOLKIT,
          .nvidia_driver = driver(),
          .nccl_built = HORTATOR_NCCL_BUILT,
          .nccl_loaded = loaded_nccl()};
}

}  // namespace hortator::cli::doctor
