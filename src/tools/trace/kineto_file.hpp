#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/trace/clock_alignment.hpp"

/// The trace that a rank's profile() has written: LibTorch's JSON for Chrome.
namespace hortator::tools {

struct TraceHead {
  int rank = 0;
  int world = 1;
  std::string host = {};
  std::vector<Meeting> barriers = {};  ///< of all ranks, when the profile began
  double base = 0;                     ///< microseconds since 1970 at which the times of events begin
};

/// Calls `take` for each event, in the order of the file; it may change the event. Events are not kept, so that large
/// files need little memory. `number`: the rank if the file does not name one. Throws Error for a file that is not a
/// valid trace.
TraceHead read_trace(const std::filesystem::path& file, int number,
                     const std::function<void(nlohmann::ordered_json& event)>& take);

/// One file for each rank: profile_0.json, profile_1.json, ..., or those of a later `cycle` of the profile's schedule
/// (profile_0.2.json). `folder` has them, or is the folder of a run, which has them in profile/. Throws UsageError if
/// there are none, and Error if some ranks' are missing.
std::vector<std::filesystem::path> trace_files(const std::filesystem::path& folder, int cycle);

}  // namespace hortator::tools
