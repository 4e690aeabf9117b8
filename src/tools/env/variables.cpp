#include "tools/env/variables.hpp"

#include <algorithm>
#include <array>

#include "core/environment/secrets.hpp"

namespace hortator::tools::env {
namespace {

constexpr std::array<std::string_view, 4> reported_variables = {"CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "LD_PRELOAD",
                                                                "LIBTORCH"};
constexpr std::array<std::string_view, 20> prefixes = {
    "OMP_",   "GOMP_",  "KMP_", "MKL_", "HORTATOR_", "OMPI_", "PRTE_",  "PMI_",   "PMIX_", "PALS_",
    "MPICH_", "I_MPI_", "UCX_", "FI_",  "NCCL_",     "HDF5_", "TORCH_", "SLURM_", "PBS_",  "LSB_"};
}  // namespace

bool is_relevant(std::string_view name) {
  return std::find(reported_variables.begin(), reported_variables.end(), name) != reported_variables.end() ||
         std::any_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

std::map<std::string, std::string> relevant_variables(const char* const* environment) {
  std::map<std::string, std::string> relevant;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const auto end = entry.find('=');
    if (end == std::string_view::npos) continue;
    const auto name = entry.substr(0, end);
    if (is_relevant(name)) relevant.emplace(name, core::shown_value(name, entry.substr(end + 1)));
  }
  return relevant;
}

}  // namespace hortator::tools::env
