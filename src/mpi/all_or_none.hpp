#pragma once

#include <functional>

namespace hortator::mpi {

/// Runs work that may fail on a single rank; all ranks then throw. See all_or_none() in agree.hpp.
using AllOrNone = std::function<void(const std::function<void()>& work)>;

}  // namespace hortator::mpi
