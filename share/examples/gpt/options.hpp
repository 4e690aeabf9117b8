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
  std::int64_t batch_size = 32;  ///< windows per step over all ranks: the same training on any number of ranks
  double learning_rate = 3e-3;
  std::int64_t checkpoint_every = 100;  ///< steps
  std::int64_t stop_after = 0;          ///< steps in this call; 0: to the end
  std::string prompt = "The ";
  std::uint64_t seed = 7;
  bool cpu = false;
  bool help = false;
};

/// Parses the command line. Throws hortator::UsageError for unknown options and invalid values.
Options parse_options(int argc, const char* const* argv);
std::string usage();

}  // namespace gpt
