#pragma once

#include <ATen/core/Tensor.h>

#include <array>

/// Numbers in bytes, by blockwise dynamic quantisation (Dettmers et al., 2022): each block of elements has a scale, its
/// largest magnitude, and a byte selects one of 256 fractions of it, which lie closer together near zero.
namespace hortator::step {

/// The fractions, ascending. `is_signed`: from -1 to 1, else from 0 to 1.
std::array<float, 256> dynamic_codes(bool is_signed);

/// Converts between numbers and bytes.
class ByteCodes {
 public:
  /// Signed or unsigned numbers. `device`: of the tensors.
  static const ByteCodes& of(bool is_signed, c10::Device device);

  /// The numbers, in fp32, as one dimension. `bytes`: one a number; `scales`: one a block.
  at::Tensor restore(const at::Tensor& bytes, const at::Tensor& scales) const;
  /// Writes the nearest bytes; positive numbers never become 0. `numbers` is fp32 of one dimension.
  void store(const at::Tensor& numbers, at::Tensor& bytes, at::Tensor& scales) const;

 private:
  ByteCodes(bool is_signed, c10::Device device);

  bool is_signed_;
  at::Tensor codes_;
  at::Tensor borders_;  ///< between neighbouring codes
};

}  // namespace hortator::step
