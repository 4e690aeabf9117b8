#pragma once

#include <cstdlib>

namespace hortator::machine {

/// Sets the variable that cuBLAS needs for deterministic algorithms; LibTorch refuses matrix products without it. Keeps
/// a value that the user has set. Call it before the first product.
inline void fix_cublas_workspace() { setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*replace=*/0); }

}  // namespace hortator::machine
