#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace hortator::data {

/// Throws UsageError unless images can have that many channels.
void require_channels(int channels);

/// The image in a PNG or JPEG file: float32 [channels, height, width] from 0 to 1. Throws formats::ImageFault.
at::Tensor image_tensor(std::span<const std::uint8_t> file, int channels);

}  // namespace hortator::data
