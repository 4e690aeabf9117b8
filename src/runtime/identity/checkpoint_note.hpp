#pragma once

#include <filesystem>

namespace hortator::runtime {

/// Reports a complete checkpoint to a launcher that asks for it (`hortator launch --on-checkpoint`). Called by one
/// rank. Throws Error if that is not possible.
void publish_checkpoint(const std::filesystem::path& folder);

}  // namespace hortator::runtime
