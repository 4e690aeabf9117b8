#include "launch/srun_mpi.hpp"

#include <algorithm>
#include <vector>

namespace hortator::launching {
namespace {

// Releases of Slurm print the plugins one a line, behind "srun: ", or several after a colon.
std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(list) + "\n") {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

}  // namespace

std::optional<std::string> choose_srun_mpi(std::string_view list, MpiFlavor mpi) {
  const auto words = words_of(list);
  const auto has = [&](const std::string& name) { return std::find(words.begin(), words.end(), name) != words.end(); };
  if (mpi != MpiFlavor::open_mpi) {
    for (const auto* name : {"cray_shasta", "pmi2"}) {
      if (has(name)) return name;
    }
  }
  if (has("pmix")) return "pmix";
  std::string newest;
  for (const auto& word : words) {
    if (word.starts_with("pmix_v")) newest = std::max(newest, word);
  }
  return newest.empty() ? std::nullopt : std::optional(newest);
}

}  // namespace hortator::launching
