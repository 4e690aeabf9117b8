#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/accelerator.hpp>
#include <optional>
#include <vector>

namespace hortator::accelerator {

/// Where a run's files lie and what the next checkpoint is called.
class Project {
 public:
  explicit Project(const ProjectOptions& options);

  const std::filesystem::path& dir() const { return dir_; }
  /// Where save_state() without a folder goes.
  std::filesystem::path next_checkpoint() const;
  /// Where load_state() without a folder looks, one after the other: the newest first. Some may be damaged.
  std::vector<std::filesystem::path> checkpoints() const;
  bool has_checkpoint() const;  ///< is any of them complete?

  /// The next one's number, with automatic naming: counts on after a restart.
  std::int64_t iteration() const { return iteration_; }
  void saved_one() { ++iteration_; }
  void restore_iteration(std::int64_t iteration) { iteration_ = iteration; }

 private:
  std::filesystem::path dir_;
  bool automatic_naming_;
  std::int64_t iteration_ = 0;
};

/// The number in "checkpoint_12"; nothing for any other name.
std::optional<std::int64_t> checkpoint_number(const std::filesystem::path& folder);

}  // namespace hortator::accelerator
