#pragma once

#include <hortator/export.hpp>
#include <string_view>

namespace hortator {

/// The type in which prepared models compute. Their parameters, their gradients and what they return stay in fp32.
enum class Precision {
  no,  ///< no other than the tensors' own
  /// Half the memory, a small range: losses are scaled, see GradScalerOptions. On a CPU it is fp16 as well, but slow,
  /// and what has no fp16 there (LSTM, on most processors) throws.
  fp16,
  bf16,  ///< half the memory, the range of fp32 with 8 bits of precision
  fp8,   ///< refused: LibTorch has no autocast for it
};
HORTATOR_API std::string_view to_string(Precision precision);

}  // namespace hortator
