#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/accelerator.hpp>
#include <hortator/export.hpp>
#include <optional>
#include <string>
#include <vector>

namespace hortator {

/// A DeepSpeed configuration file, translated to this library's options. fill() completes its "auto" entries:
///
///     auto config = hortator::read_deepspeed("ds_config.json");
///     hortator::Accelerator accelerator(config.options);
///     config.fill(accelerator, batch_size);
struct HORTATOR_API DeepspeedConfig {
  AcceleratorOptions options = {};  ///< those given to read_deepspeed, with the file's: stage, precision, ...
  std::optional<double> gradient_clipping = {};  ///< for clip_grad_norm_; nothing if the file does not clip
  std::optional<std::int64_t> train_micro_batch_size_per_gpu = {};
  std::optional<std::int64_t> train_batch_size = {};
  std::vector<std::string> ignored = {};  ///< entries without effect here, such as "zero_optimization.overlap_comm"
  std::vector<std::string> unknown = {};  ///< entries that are not known to be DeepSpeed's

  /// Fills in the batch sizes, from a loader's `batch_size` on each rank. If the run differs from the file, throws one
  /// UsageError with all differences. The main process logs which entries were ignored.
  void fill(const Accelerator& accelerator, std::int64_t batch_size);
};

/// Reads a configuration file, on this rank only, on top of the options `run`. Ignores entries that the program itself
/// decides (optimizer, scheduler). As in Accelerate, an "auto" stage or clipping is the launcher's; if it sets none,
/// the stage is 2 and gradients are clipped at 1. A file without these entries does not shard or clip. Throws
/// UsageError for entries that ask for a feature which does not exist here and cannot be left out.
HORTATOR_API DeepspeedConfig read_deepspeed(const std::filesystem::path& file, const AcceleratorOptions& run = {});

}  // namespace hortator
