#pragma once

#include <hortator/export.hpp>
#include <string_view>

namespace hortator {

/// The type in which prepared models compute. Their parameters, their gradients and what they return stay in fp32.
enum class Precision {
  no,    ///< no other than the tensors' own
  fp16,  ///< half the memory, a small range: losses are scaled, see GradScalerOptions
  bf16,  ///< half the memory, the range of fp32 with 8 bits of precision
  fp8,   ///< refused: LibTorch has no autocast for it
};
HORTATOR_API std::string_view to_string(Precision precision);

}  // namespace hortator
