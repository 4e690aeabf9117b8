#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace hortator::runtime {

/// A sequence that is divided over ranks (parallel/context), as models need to know it.
struct DividedSequence {
  at::Tensor positions = {};  ///< of this rank's tokens, ascending, int64 on the CPU
  std::int64_t length = 0;    ///< of the whole sequence
  /// The states of one token of each row, [batch, width], from this rank's [batch, own, width] and the tokens'
  /// positions [batch]. The gradient is that of the mean of the ranks' losses. @collective
  std::function<at::Tensor(const at::Tensor& states, const at::Tensor& positions)> tokens_at = {};
  /// [batch, length] from this rank's [batch, own]: masks, numbers of documents. No gradient. @collective
  std::function<at::Tensor(const at::Tensor& own)> whole = {};
  /// The maximum over the ranks of the sequence. @collective
  std::function<at::Tensor(const at::Tensor&)> max = {};

  std::int64_t own() const { return positions.numel(); }
};

/// The sequence that is divided now; nothing if none is.
std::optional<DividedSequence> divided_sequence();
void set_divided_sequence(std::optional<DividedSequence> sequence);

/// The positions of `count` tokens after `past` earlier ones, int64 on the device: past, past + 1, ..., or those of
/// this rank's tokens in a divided sequence. Throws UsageError if it has other tokens.
at::Tensor default_positions(std::int64_t past, std::int64_t count, c10::Device device);

/// The states of each row's first token in the whole sequence, [batch, width], from those of this rank's tokens.
/// @collective in a divided sequence
at::Tensor first_token(const at::Tensor& states);
/// The same for the last token of each row for which `is_token`, [batch, own], is true; the first one if it never is.
/// @collective in a divided sequence
at::Tensor last_token(const at::Tensor& states, const at::Tensor& is_token);

}  // namespace hortator::runtime
