// Compiled with -mavx512f and its companions where the target is x86-64.
#ifdef __AVX512BW__
#include "comm/kernels/reduce_kernels_body.hpp"
#else
#include "comm/kernels/reduce_kernels.hpp"
#endif

namespace hortator::comm::kernels {

#ifdef __AVX512BW__
Kernel avx512_kernel() {
  const bool has_all = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && converts_halves();
  return has_all ? &reduce : nullptr;
}
#else
Kernel avx512_kernel() { return nullptr; }
#endif

}  // namespace hortator::comm::kernels
