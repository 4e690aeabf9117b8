#pragma once

#include <c10/core/ScalarType.h>

#include <hortator/export.hpp>
#include <optional>
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

/// Types of what surrounds the computation in 16 bits; FSDP's MixedPrecision. Each is kFloat, kHalf or kBFloat16.
struct MixedPrecisionPolicy {
  /// In which gradients travel between ranks: reduce_dtype, the same as ddp.comm_hook. Default: their own type, usually
  /// fp32, where FSDP takes the 16-bit one.
  std::optional<c10::ScalarType> reduce = {};
  /// The type of all floating-point tensors in a model's results. Default: results in 16 bits become fp32.
  std::optional<c10::ScalarType> output = {};
  /// The type of floating-point buffers, from prepare() on, in checkpoints as well. Default: their own types.
  std::optional<c10::ScalarType> buffer = {};
};

}  // namespace hortator
