#include "comm/kernels/reduce_kernels_body.hpp"

namespace hortator::comm::kernels {

Kernel portable_kernel() { return &reduce; }

}  // namespace hortator::comm::kernels
