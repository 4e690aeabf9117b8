#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "accelerator/training/training.hpp"

namespace hortator::accelerator {

/// Goes on from a folder that save_state() of Hugging Face's Accelerate wrote, with the objects that are prepared here:
/// they say what is a parameter and what a buffer, in which order, and of which kind each optimizer and schedule is, of
/// which the folder says nothing. Python's process is not needed, and nothing of the folder is executed.
///
/// Models, optimizers, schedules, the scaler, registered objects and the random numbers of PyTorch are taken over;
/// returns what is not. `rank` is this process's of `world`. What does not fit is found before anything is changed;
/// unless it is `strict`, that is only listed, but for weights of other shapes.
std::vector<std::string> restore_from_accelerate(Training& training, const std::filesystem::path& folder, int rank,
                                                 int world, bool strict);

}  // namespace hortator::accelerator
