#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <hortator/training/accelerator_options.hpp>
#include <optional>
#include <set>
#include <vector>

#include "checkpoint/write/retention.hpp"

namespace hortator::accelerator {

/// A run's folder and the names of its checkpoints.
class Project {
 public:
  explicit Project(const ProjectOptions& options);

  const std::filesystem::path& dir() const { return dir_; }
  /// The folder that save_state() writes by default; with automatic naming it has the iteration's number.
  std::filesystem::path next_checkpoint() const;
  /// The folders that load_state() tries by default, newest first: all that hold a file of a checkpoint. Some may be
  /// damaged: a run that took those for nothing would begin from scratch.
  std::vector<std::filesystem::path> checkpoints() const;

  /// The number of the next checkpoint with automatic naming. Continues after a restart.
  std::int64_t iteration() const { return iteration_; }
  /// The first number, from the iteration on, that is greater than those of all checkpoints: a run that continues from
  /// an older checkpoint, or from none, must not replace a newer one. Call it on one rank, then set_iteration() on all.
  std::int64_t first_free_iteration() const;
  void set_iteration(std::int64_t iteration) { iteration_ = iteration; }
  void saved_one() { ++iteration_; }
  /// A checkpoint could not be read, although it may look whole: the save that replaces it keeps it, and prune() too.
  void note_damaged(const std::filesystem::path& folder) { damaged_.insert(folder); }
  bool is_damaged(const std::filesystem::path& folder) const { return damaged_.contains(folder); }
  void forget_damaged(const std::filesystem::path& folder) { damaged_.erase(folder); }
  /// Removes complete checkpoints beyond the limit. Call it on one rank; the others need not wait. Only logs a warning
  /// if a checkpoint cannot be removed.
  void prune() const noexcept;

 private:
  void remove_surplus() const;
  using Numbers = std::set<std::int64_t, std::greater<>>;
  Numbers numbers() const;  ///< newest first, with those of damaged checkpoints and of those moved aside

  std::filesystem::path dir_;
  bool automatic_naming_;
  checkpoint::Retention retention_;
  std::int64_t iteration_;
  std::set<std::filesystem::path> damaged_ = {};
};

/// The number in "checkpoint_12"; nothing for any other name.
std::optional<std::int64_t> checkpoint_number(const std::filesystem::path& folder);

}  // namespace hortator::accelerator
