#pragma once

#include <functional>

namespace hortator::mpi {

/// Does what may fail on one rank alone: then all throw.
using AllOrNone = std::function<void(const std::function<void()>& work)>;

}  // namespace hortator::mpi
