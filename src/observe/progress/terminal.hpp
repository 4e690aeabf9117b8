#pragma once

#include <optional>
#include <string_view>

namespace hortator::observe {

/// The columns of the terminal on which this process's standard error appears, or nothing when it does not.
/// mpirun hands its ranks a pipe and copies it to its own standard error: then mpirun's counts, which only ranks on its
/// own machine can see, so that of many nodes only one draws.
std::optional<int> terminal_columns();

/// Is a process of this name one that copies its children's standard error to its own?
bool is_mpirun(std::string_view process_name);

}  // namespace hortator::observe
