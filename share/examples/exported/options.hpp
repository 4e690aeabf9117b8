#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "../support/axes.hpp"

namespace exported_example {

/// The command line. Empty paths were not given.
struct Config {
  std::filesystem::path model, inputs, outputs, gradients, target, loss_csv, save, run_dir;
  std::int64_t steps = 0, zero = 0, seed = 0;
  double lr = 0.01;
  bool evaluates = false, cpu = false;
  example::Axes axes = {};
};

/// Returns nothing if --help was given. Throws UsageError for options that do not fit together.
std::optional<Config> parse_options(int argc, char** argv);

}  // namespace exported_example
