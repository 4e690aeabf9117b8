#pragma once

#include <cstdlib>

namespace hortator::machine {

/// For deterministic algorithms on a device: cuBLAS asks the environment for it, and LibTorch refuses products without
/// it. What the user has set stays. Before the first product.
inline void fix_cublas_workspace() { setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*replace=*/0); }

}  // namespace hortator::machine
