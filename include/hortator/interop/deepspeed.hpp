#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/accelerator.hpp>
#include <hortator/export.hpp>
#include <optional>
#include <string>
#include <vector>

namespace hortator {

/// A DeepSpeed configuration file in this library's words. What it calls "auto" is filled from the run:
///
///     auto config = hortator::read_deepspeed("ds_config.json");
///     hortator::Accelerator accelerator(config.options);
///     config.fill(accelerator, batch_size);
struct HORTATOR_API DeepspeedConfig {
  AcceleratorOptions options = {};  ///< those given to read_deepspeed, and what the file says: stage, precision, ...
  std::optional<double> gradient_clipping = {};  ///< for clip_grad_norm_
  std::optional<std::int64_t> train_micro_batch_size_per_gpu = {};
  std::optional<std::int64_t> train_batch_size = {};
  std::vector<std::string> ignored = {};  ///< entries without a meaning here, as "zero_optimization.overlap_comm"
  std::vector<std::string> unknown = {};  ///< entries that are none of DeepSpeed's, as far as is known

  /// The numbers of samples, from a loader's `batch_size` on each rank. Throws all that the file says otherwise, in one
  /// error. The main process says which entries were ignored.
  void fill(const Accelerator& accelerator, std::int64_t batch_size);
};

/// Reads the file by this rank alone. Entries of the program's matter (optimizer, scheduler) are ignored; what asks for
/// something that cannot be had, and would be missed, throws.
HORTATOR_API DeepspeedConfig read_deepspeed(const std::filesystem::path& file, const AcceleratorOptions& run = {});

}  // namespace hortator
