#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/why/cause.hpp"
#include "tools/why/evidence.hpp"

/// Why a run ended, and whether a restart can help.
namespace hortator::tools {

enum class Role { initiating, cascade, teardown };
std::string_view to_string(Role role);

/// Ranks that ended in the same way.
struct FailureLink {
  Role role = Role::initiating;
  std::vector<int> ranks = {};  ///< ascending
  std::string host = {};        ///< of the first of them
  double time = 0;              ///< of the first of them; 0: unknown
  std::string text = {};
};

struct Diagnosis {
  std::string state = {};                 ///< "failed", "finished", "stopped", "running", "unknown"
  std::optional<Decision> decision = {};  ///< nothing while the run is running, or nothing is known
  std::string rule = {};                  ///< that decided
  std::string error_class = {};
  std::string reason = {};
  std::optional<int> rank = {};  ///< where it began
  std::string host = {};
  std::string place = {};  ///< "file.cpp:12", or what it did
  std::string problem = {};
  std::int64_t step = 0;
  std::int64_t step_tolerance = 0;
  double time = 0;
  std::string suspect_host = {};  ///< a node to leave out; empty: none
  std::string signature = {};     ///< equal for equal errors, whatever numbers they name
  std::vector<FailureLink> chain = {};
};

/// Finds the first cause among the records, its class, and the decision. Pure. Never `stop` for a cause that a restart
/// cures: where the records cannot tell, the decision is `retry`, and a repetition at the same step stops.
Diagnosis diagnose(const Evidence& evidence);

/// An error's text without its numbers and addresses.
std::string signature_of(const std::string& error_class, const runtime::EndingRecord& ending);

}  // namespace hortator::tools
