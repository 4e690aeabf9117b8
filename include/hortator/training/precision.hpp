#pragma once

#include <hortator/export.hpp>
#include <string_view>

namespace hortator {

/// The type in which prepared models compute. Parameters, gradients and results stay in fp32.
enum class Precision {
  no,  ///< the tensors' own types
  /// Half the memory with a small range: losses are scaled, see GradScalerOptions. Slow on CPUs, where operators
  /// without fp16 (LSTM on most processors) throw.
  fp16,
  bf16,  ///< half the memory, with the range of fp32 and 8 bits of precision
  fp8,   ///< bf16, and linear layers but the first and the last multiply in 8 bits: see fp8() in training/fp8.hpp
};
HORTATOR_API std::string_view to_string(Precision precision);

}  // namespace hortator
