#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/ending/claim.hpp"

namespace hortator::runtime {

/// How watchdogs of several nodes talk when MPI cannot be used: files in the run folder, one that says that there is a
/// stall and at most one a node in answer. Each is removed by its own name.
class StallFiles {
 public:
  StallFiles(std::filesystem::path folder, std::string run) : folder_(std::move(folder)), run_(std::move(run)) {}

  /// Says that there is a stall. The first to do so collects the answers and reports.
  Claim announce(int node) const;
  /// The node that has announced a stall, if one has.
  std::optional<int> announcer() const;

  /// A node's answer, by whichever of its ranks is first.
  void answer(int node, const std::string& slots) const;
  std::optional<std::string> answer_of(int node) const;

  /// Takes the stall back, with all answers.
  void remove(int nodes) const;

 private:
  std::filesystem::path announcement() const;
  std::filesystem::path answer_file(int node) const;

  std::filesystem::path folder_;
  std::string run_;
};

}  // namespace hortator::runtime
