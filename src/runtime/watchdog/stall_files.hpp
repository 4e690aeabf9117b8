#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/identity/claim.hpp"

namespace hortator::runtime {

/// Communication between the watchdogs of several nodes while MPI cannot be used: files in the run folder. One file
/// announces a stall, and each node answers with at most one. Each is removed by its own name.
class StallFiles {
 public:
  StallFiles(std::filesystem::path folder, std::string run) : folder_(std::move(folder)), run_(std::move(run)) {}

  /// Announces a stall. The first node that does so collects the answers and reports.
  Claim announce(int node) const;
  /// The node that has announced a stall, if any.
  std::optional<int> announcer() const;

  /// Writes a node's answer; the first of its ranks that calls it does so.
  void answer(int node, const std::string& slots) const;
  std::optional<std::string> answer_of(int node) const;

  /// Withdraws the announcement and removes all answers.
  void remove(int nodes) const;

 private:
  std::filesystem::path announcement() const;
  std::filesystem::path answer_file(int node) const;

  std::filesystem::path folder_;
  std::string run_;
};

}  // namespace hortator::runtime
