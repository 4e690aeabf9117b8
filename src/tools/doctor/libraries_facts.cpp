#include <ATen/detail/CUDAHooksInterface.h>
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

std::string folder_in_path(const char* library) {
  for (const auto& folder : text::split(core::variable("LD_LIBRARY_PATH").value_or(""), ':')) {
    if (!folder.empty() && std::filesystem::exists(std::filesystem::path(folder) / library)) return folder;
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

std::string text_of_cuda(long version) { return text::concat(version / 1000, '.', version % 1000 / 10); }

std::string loaded_cuda_runtime() {
  auto* const found = dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion");
  int code = 0;
  if (found == nullptr || reinterpret_cast<int (*)(int*)>(found)(&code) != 0) return "";
  return text_of_cuda(code);
}

std::string cuda_runtime_of_libtorch() {
  try {
    return text_of_cuda(at::detail::getCUDAHooks().versionCUDART());
  } catch (const c10::Error&) {  // for CPUs only, or for ROCm
    return "";
  }
}

/// The folder with a CUDA runtime of any major release that Hortator supports.
std::string cuda_runtime_in_path() {
  for (const auto* library : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}) {
    if (auto folder = folder_in_path(library); !folder.empty()) return folder;
  }
  return "";
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
          .torch_in_path = folder_in_path("libtorch_cpu.so"),
          .mpi_built = mpi::built_library(),
          .mpi_loaded = mpi::library_version(),
          .mpi_files = mpi::loaded_libraries(),
          .mpirun = text::first_line(output_of("mpirun --version")),
          .serves_mpirun = has_library_for(identify_mpirun("mpirun")),
          .own_mpirun = own_mpirun().value_or(launching::Mpirun{.program = ""}).program,
          .hdf5_built = formats::built_hdf5_version(),
          .hdf5_loaded = formats::loaded_hdf5(),
          .cuda_toolkit = HORTATOR_CUDA_TOOLKIT,
          .nvidia_driver = parse_driver(nvidia_driver()),
          .cuda_runtime_built = cuda_runtime_of_libtorch(),
          .cuda_runtime_loaded = loaded_cuda_runtime(),
          .cuda_runtime_in_path = cuda_runtime_in_path(),
          .nccl_built = HORTATOR_NCCL_BUILT,
          .nccl_loaded = loaded_nccl(),
          .nccl_in_path = folder_in_path("libnccl.so.2")};
}

}  // namespace hortator::tools::doctor
