#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "accelerator/training/training.hpp"

namespace hortator::accelerator {

/// Restores models, optimizers, schedules, the scaler, registered objects and PyTorch's random numbers from a folder
/// that save_state() of Hugging Face Accelerate wrote, and returns a list of what was not restored. The prepared
/// objects determine what the folder does not record: which tensors are parameters, their order, and the type of each
/// optimizer and schedule. Nothing in the folder is executed.
///
/// `rank` is this process's of `world`. Whatever does not fit is found before anything is changed and throws Error;
/// unless it is `strict`, it is only listed, except for weights of other shapes.
std::vector<std::string> restore_from_accelerate(Training& training, const std::filesystem::path& folder, int rank,
                                                 int world, bool strict);

}  // namespace hortator::accelerator
