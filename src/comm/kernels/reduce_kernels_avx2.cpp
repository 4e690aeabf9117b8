// Compiled with -mavx2 -mf16c where the target is x86-64.
#ifdef __AVX2__
#include "comm/kernels/reduce_kernels_body.hpp"
#else
#include "comm/kernels/reduce_kernels.hpp"
#endif

namespace hortator::comm::kernels {

#ifdef __AVX2__
Kernel avx2_kernel() { return __builtin_cpu_supports("avx2") && converts_halves() ? &reduce : nullptr; }
#else
Kernel avx2_kernel() { return nullptr; }
#endif

}  // namespace hortator::comm::kernels
