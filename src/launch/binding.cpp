#include "launch/binding.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

// Slurm's words for what a rank is bound to, and those of mpirun.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> binding_names = {{{"cores", "core"},
                                                                                         {"core", "core"},
                                                                                         {"sockets", "socket"},
                                                                                         {"socket", "socket"},
                                                                                         {"ldoms", "numa"},
                                                                                         {"numa", "numa"},
                                                                                         {"threads", "hwthread"},
                                                                                         {"thread", "hwthread"},
                                                                                         {"hwthread", "hwthread"}}};

}  // namespace

std::string srun_binding(const std::string& word) {
  for (const auto& [slurm, mpi] : binding_names) {
    if (mpi == word || slurm == word) {
      const auto plural = std::find_if(binding_names.begin(), binding_names.end(),
                                       [&mpi = mpi](const auto& pair) { return pair.second == mpi; });
      return std::string(plural->first);
    }
  }
  return word;
}

std::string mpirun_binding(std::string word) {
  if (word.starts_with("verbose,")) word.erase(0, 8);
  if (word.find(':') != std::string::npos && !word.starts_with("core:")) {
    throw UsageError({.what = "--cpu-bind: " + text::quote(word) + " works only with srun",
                      .why = "mpirun starts the ranks here",
                      .hint = "use none, core, socket, numa or hwthread"});
  }
  for (const auto& [slurm, mpi] : binding_names) {
    if (slurm == word) return std::string(mpi);
  }
  return word;
}

}  // namespace hortator::launching
