#pragma once

#include <c10/core/ScalarType.h>

#include <hortator/training/precision.hpp>
#include <optional>

#include "core/environment/environment.hpp"

namespace hortator::step {

/// The precision that the program asked for, else HORTATOR_MIXED_PRECISION, else ACCELERATE_MIXED_PRECISION, else none.
/// Throws for an unknown precision.
Precision choose_precision(std::optional<Precision> asked, const core::Variables& variables);

/// The type that autocast casts to; nothing for Precision::no. With fp8, linear layers then compute in 8 bits.
std::optional<c10::ScalarType> autocast_type(Precision precision);

}  // namespace hortator::step
