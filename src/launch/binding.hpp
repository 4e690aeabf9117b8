#pragma once

#include <string>

/// What a rank is bound to: srun and mpirun have different words for the same binding.
namespace hortator::launching {

/// The value of srun's --cpu-bind for "core" and the like; a value of srun's own is returned as it is.
std::string srun_binding(const std::string& word);

/// The value of mpirun's --bind-to. Throws UsageError for a value that only srun has.
std::string mpirun_binding(std::string word);

}  // namespace hortator::launching
