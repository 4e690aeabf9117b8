#pragma once

#include <optional>
#include <string_view>

namespace hortator::observe {

/// The peak rate of a device from its data sheet: floating-point operations per second of dense 16-bit products.
/// Nothing for unlisted devices.
std::optional<double> peak_flops(std::string_view device);

}  // namespace hortator::observe
