#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/status/measure.hpp"

/// A scaling study: which runs it is made of, and what they must have alike. Pure.
namespace hortator::tools {

/// Strong: the same work by more ranks. Weak: as much work for each rank.
enum class Growth { strong, weak };
std::string_view to_string(Growth growth);

struct ScalePlan {
  Growth growth = Growth::strong;
  std::vector<int> nodes = {};  ///< of the points, ascending; empty: one machine, as many as fit
  std::vector<int> ranks = {};  ///< of the points, ascending
  int repeats = 3;
  std::string program = "";             ///< the executable's checksum
  std::vector<std::string> words = {};  ///< the program and its arguments
  int cores_per_node = 1;
  std::optional<double> peak_flops = {};  ///< of what a rank computes on, as the user says; a second
};

/// "1,2,4,8" as numbers. UsageError unless they are from 1 on and ascending.
std::vector<int> parse_counts(std::string_view words, std::string_view option);

/// One run.
struct ScaleRun {
  int ranks = 1;
  int nodes = 0;  ///< 0: not said
  int repeat = 0;
};
/// The runs of a plan: all sizes, then all again, so that what drifts with time falls on all of them.
std::vector<ScaleRun> runs_of(const ScalePlan& plan);
std::string file_name(const ScaleRun& run);  ///< "point_8_2.json"

/// The number of nodes of a size; 0 where it was not said.
int nodes_of(const ScalePlan& plan, int ranks);

std::string to_json(const ScalePlan& plan);
ScalePlan parse_plan(const std::string& json);  ///< Error for what is none

/// What a run measured.
struct ScalePoint {
  ScaleRun run = {};
  observe::Measure measure = {};
  std::string program = "";  ///< the checksum of what was run
};
std::string to_json(const ScalePoint& point);
ScalePoint parse_point(const std::string& json);  ///< Error for what is none

/// Error that names what is missing, or differs between points: versions, the program, the number of ranks asked for.
void check_set(const ScalePlan& plan, const std::vector<ScalePoint>& points);

}  // namespace hortator::tools
