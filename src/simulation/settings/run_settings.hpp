#pragma once

#include <cstdint>
#include <hortator/training/accelerator_options.hpp>
#include <optional>
#include <string>

#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// What is done about a training step whose loss or gradient is not finite.
enum class NonfiniteStep {
  skip,    ///< left out on all ranks
  fail,    ///< an error on all ranks
  proceed  ///< made, without a check and without a wait for the device
};

/// The settings of a run. Models and buffers are read when they are made.
struct RunSettings {
  AcceleratorOptions options = {};
  std::uint64_t seed = 0;
  NonfiniteStep on_nonfinite = NonfiniteStep::skip;
  std::optional<int> model_threads = {};  ///< of each rank; by default OMP_NUM_THREADS, or its share of the CPUs
  bool resumes_partly = false;            ///< kept arrays and buffers that a checkpoint does not have stay as they are
  SettingNode models = {};
  SettingNode buffers = {};
  std::string file = "";

  /// The section of one model or buffer. Throws UsageError with the nearest name if there is none.
  Section model(const std::string& name) const;
  Section buffer(const std::string& name) const;
};

/// The content of a settings file. Throws UsageError if it cannot be read.
std::string read_settings_file(const std::string& file);

/// Reads the keys of a run from a parsed file. Keys of `hortator launch` may be in the same file: those that a program
/// must know are used, the others are left to the launcher. `asked_folder` is the run folder of a file without run_dir;
/// empty: one that has the file's name.
RunSettings read_run_settings(const SettingNode& root, const std::string& file, const std::string& asked_folder = {});

}  // namespace hortator::simulation
