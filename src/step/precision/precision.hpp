#pragma once

#include <c10/core/ScalarType.h>

#include <hortator/training/precision.hpp>
#include <optional>

#include "core/environment/environment.hpp"

namespace hortator::step {

/// The precision that the program asked for, else HORTATOR_MIXED_PRECISION, else ACCELERATE_MIXED_PRECISION, else none.
/// Throws for an unknown or unavailable precision.
Precision choose_precision(std::optional<Precision> asked, const core::Variables& variables);

/// The type that autocast casts to; nothing for Precision::no.
std::optional<c10::ScalarType> autocast_type(Precision precision);

}  // namespace hortator::step
