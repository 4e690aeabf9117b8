// Compiled with -mavx2 -mf16c where the target is x86-64.
#include "comm/reduce_kernels_body.hpp"

namespace hortator::comm::kernels {

#ifdef __AVX2__
Kernel avx2_kernel() { return __builtin_cpu_supports("avx2") && converts_halves() ? &reduce : nullptr; }
#else
Kernel avx2_kernel() { return nullptr; }
#endif

}  // namespace hortator::comm::kernels
