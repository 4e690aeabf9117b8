#include <dlfcn.h>
#include <torch/version.h>

#include <filesystem>

#include "core/environment/environment.hpp"
#include "core/loaded_libraries.hpp"
#include "core/text/text.hpp"
#include "formats/hdf5/library.hpp"
#include "mpi/environment.hpp"
#include "runtime/build_identity.hpp"
#include "tools/doctor/libraries.hpp"
#include "tools/launch/machine.hpp"
#include "tools/launch/mpirun.hpp"
#include "tools/programs.hpp"

namespace hortator::tools::doctor {
namespace {

std::string torch_in_path() {
  for (const auto& folder : text::split(core::variable("LD_LIBRARY_PATH").value_or(""), ':')) {
    if (!folder.empty() && std::filesystem::exists(std::filesystem::path(folder) / "libtorch_cpu.so")) return folder;
  }
  return "";
}

// Looked up by name, since builds without CUDA do not link NCCL.
std::string loaded_nccl() {
  auto* const found = dlsym(RTLD_DEFAULT, "ncclGetVersion");
  int code = 0;
  if (found == nullptr || reinterpret_cast<int (*)(int*)>(found)(&code) != 0) return "";
  return text::concat(code / 10000, '.', code / 100 % 100, '.', code % 100);
}

}  // namespace

std::string parse_driver(const std::string& line) {
  for (const auto& field : text::split(line, ' ')) {
    const auto parts = text::split(field, '.');
    long long number = 0;
    if (parts.size() >= 2 && text::parse_integer(parts.front(), number) && number >= 100) return field;
  }
  return "";
}

LibraryFacts inspect_libraries() {
  return {.libtorch_built = TORCH_VERSION,
          .libtorch_loaded = runtime::libtorch_version(),
          .torch_in_path = torch_in_path(),
          .mpi_built = mpi::built_library(),
          .mpi_loaded = mpi::library_version(),
          .mpi_files = mpi::loaded_libraries(),
          .mpirun = text::first_line(output_of("mpirun --version")),
          .own_mpirun = own_mpirun().value_or(launching::Mpirun{.program = ""}).program,
          .hdf5_built = formats::built_hdf5_version(),
          .hdf5_loaded = formats::loaded_hdf5(),
          .cuda_toolkit = HORTATOR_CUDA_TOOLKIT,
          .nvidia_driver = parse_driver(nvidia_driver()),
          .nccl_built = HORTATOR_NCCL_BUILT,
          .nccl_loaded = loaded_nccl()};
}

}  // namespace hortator::tools::doctor
