#pragma once

#include <string>
#include <string_view>

#include "checkpoint/outline.hpp"

namespace hortator::checkpoint {

/// An outline as bytes, to be sent between ranks: the same bytes for the same outline, wherever they are made.
std::string pack(const Outline& outline);
Outline unpack(std::string_view bytes);

}  // namespace hortator::checkpoint
