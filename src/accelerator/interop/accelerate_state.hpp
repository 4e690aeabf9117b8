#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hortator::accelerator {

class Training;

/// Restores models, optimizers, schedules, the scaler, registered objects and PyTorch's random numbers from a folder
/// that save_state() of Hugging Face Accelerate wrote, and returns a list of what was not restored. The prepared
/// objects determine what the folder does not record: which tensors are parameters, their order, and the type of each
/// optimizer and schedule. Nothing in the folder is executed.
///
/// Whatever does not fit on some rank is found before anything is changed, and all throw Error; unless it is `strict`,
/// it is only listed, except for weights of other shapes. Each rank keeps its own part of sharded and divided
/// parameters and of their moments, and has one whole moment in memory at a time. @collective
std::vector<std::string> restore_from_accelerate(Training& training, const std::filesystem::path& folder, bool strict);

}  // namespace hortator::accelerator
