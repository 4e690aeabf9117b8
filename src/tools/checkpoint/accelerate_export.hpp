#pragma once

#include <filesystem>

namespace hortator::tools::checkpoints {

/// Converts a checkpoint of save_state to a folder that load_state() of Hugging Face Accelerate resumes from; `to` must
/// not exist. Prints what the folder does not hold. Several ranks share the work. Returns the exit code.
int export_for_accelerate(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace hortator::tools::checkpoints
