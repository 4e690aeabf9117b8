#pragma once

#include <c10/core/ScalarType.h>

#include <hortator/training/precision.hpp>
#include <optional>

#include "core/environment/environment.hpp"

namespace hortator::step {

/// What the program asked for, else HORTATOR_MIXED_PRECISION, else ACCELERATE_MIXED_PRECISION, else none. Throws where
/// that has no meaning or cannot be had.
Precision choose_precision(std::optional<Precision> asked, const core::Variables& variables);

/// The type that autocast casts to; nothing with Precision::no.
std::optional<c10::ScalarType> autocast_type(Precision precision);

}  // namespace hortator::step
