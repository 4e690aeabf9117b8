#pragma once

#include <optional>

#include "core/environment/environment.hpp"

namespace hortator::core {

/// The outermost level of OMP_NUM_THREADS; nothing for a value that OpenMP ignores.
std::optional<int> asked_threads(const Variables& variables);

/// Whether the user has chosen how OpenMP threads wait for each other: spinning or sleeping.
bool has_wait_policy(const Variables& variables);

}  // namespace hortator::core
