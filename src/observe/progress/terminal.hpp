#pragma once

#include <optional>
#include <string_view>

namespace hortator::observe {

/// The columns of the terminal that shows this process's standard error; nothing when there is none. mpirun gives its
/// ranks a pipe and copies it to its own standard error. In that case mpirun's terminal counts. Only ranks on mpirun's
/// machine can see it, so that a single node draws.
std::optional<int> terminal_columns();

/// Whether a process of this name copies its children's standard error to its own.
bool is_mpirun(std::string_view process_name);

}  // namespace hortator::observe
