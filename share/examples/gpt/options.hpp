#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model.hpp"

namespace gpt {

struct Options {
  std::filesystem::path run_dir = "runs/gpt";
  std::vector<std::filesystem::path> text;  ///< files and folders
  ModelOptions model;
  std::int64_t steps = 600;
  std::int64_t batch_size = 32;  ///< windows a step, of all ranks together: the same training on any number of ranks
  double learning_rate = 3e-3;
  std::int64_t checkpoint_every = 100;  ///< steps
  std::int64_t stop_after = 0;          ///< steps of this call; 0: until the end
  std::string prompt = "The ";
  std::uint64_t seed = 7;
  bool cpu = false;
  bool help = false;
};

/// Throws hortator::UsageError for what does not exist or makes no sense.
Options parse_options(int argc, const char* const* argv);
std::string usage();

}  // namespace gpt
