#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <hortator/accelerator.hpp>
#include <optional>
#include <set>
#include <vector>

#include "checkpoint/write/retention.hpp"

namespace hortator::accelerator {

/// Where a run's files lie and what the next checkpoint is called.
class Project {
 public:
  explicit Project(const ProjectOptions& options);

  const std::filesystem::path& dir() const { return dir_; }
  /// Where save_state() without a folder goes, with automatic naming under the iteration's number.
  std::filesystem::path next_checkpoint() const;
  /// Where load_state() without a folder looks, one after the other: the newest first. Some may be damaged.
  std::vector<std::filesystem::path> checkpoints() const;
  bool has_checkpoint() const;  ///< is any of them complete?

  /// The next one's number, with automatic naming: counts on after a restart.
  std::int64_t iteration() const { return iteration_; }
  /// The first number from the iteration on after which none is taken: a run that goes on from an older checkpoint, or
  /// from none, takes no other's place. One rank looks, and all set_iteration() to it.
  std::int64_t first_free_iteration() const;
  void set_iteration(std::int64_t iteration) { iteration_ = iteration; }
  void saved_one() { ++iteration_; }
  /// Removes those that are too many, of those that are durable. One rank calls it, and the others do not wait for it:
  /// what cannot be removed is only warned of.
  void prune() const noexcept;

 private:
  void remove_surplus() const;
  using Numbers = std::set<std::int64_t, std::greater<>>;
  Numbers numbers() const;  ///< from the newest on, also of damaged ones and of those that were moved aside

  std::filesystem::path dir_;
  bool automatic_naming_;
  checkpoint::Retention retention_;
  std::int64_t iteration_;
};

/// The number in "checkpoint_12"; nothing for any other name.
std::optional<std::int64_t> checkpoint_number(const std::filesystem::path& folder);

}  // namespace hortator::accelerator
