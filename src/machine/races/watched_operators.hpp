#pragma once

#include <ATen/record_function.h>

namespace hortator::machine {

/// The callback by which LibTorch tells watch_state() of each operator, in all threads.
at::RecordFunctionCallback watched_operators();

}  // namespace hortator::machine
