#pragma once

#include <filesystem>

namespace hortator::accelerator {

class Training;

/// A checkpoint is complete on all ranks: rank 0 calls checkpoint.on_complete, and reports it to the launcher. Warns of
/// their failures, and throws none. Local.
void announce_complete(const Training& training, const std::filesystem::path& folder) noexcept;
/// The same for asynchronous saves that have become complete since the last call. Local.
void announce_completed_saves(Training& training) noexcept;

}  // namespace hortator::accelerator
