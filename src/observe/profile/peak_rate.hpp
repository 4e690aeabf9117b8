#pragma once

#include <optional>
#include <string_view>

namespace hortator::observe {

/// What a device does at most, by its maker's data sheet: floating-point operations a second of dense products in 16
/// bits. Nothing for devices that are not listed.
std::optional<double> peak_flops(std::string_view device);

}  // namespace hortator::observe
