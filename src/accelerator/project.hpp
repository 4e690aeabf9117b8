#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/accelerator.hpp>
#include <optional>
#include <vector>

#include "checkpoint/retention.hpp"

namespace hortator::accelerator {

/// Where a run's files lie and what the next checkpoint is called.
class Project {
 public:
  explicit Project(const ProjectOptions& options);

  const std::filesystem::path& dir() const { return dir_; }
  /// Where save_state() without a folder goes, with automatic naming under the iteration's number.
  std::filesystem::path next_checkpoint() const;
  /// Where load_state() without a folder looks: the newest one there is.
  std::optional<std::filesystem::path> latest_checkpoint() const;

  /// The next one's number, with automatic naming: counts on after a restart.
  std::int64_t iteration() const { return iteration_; }
  /// The first number from the iteration on after which none is taken: a run that goes on from an older checkpoint, or
  /// from none, takes no other's place. One rank looks, and all set_iteration() to it.
  std::int64_t first_free_iteration() const;
  void set_iteration(std::int64_t iteration) { iteration_ = iteration; }
  /// The checkpoint of the present number is durable: count on, and on `is_main` remove those that are too many.
  void saved_one(bool is_main);

 private:
  std::vector<std::int64_t> numbers() const;
  void prune() const;

  std::filesystem::path dir_;
  bool automatic_naming_;
  checkpoint::Retention retention_;
  std::int64_t iteration_;
};

/// The number in "checkpoint_12"; nothing for any other name.
std::optional<std::int64_t> checkpoint_number(const std::filesystem::path& folder);

}  // namespace hortator::accelerator
