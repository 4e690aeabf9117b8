#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/status/measure.hpp"

/// A scaling study: its runs, and what they must have in common. No input or output.
namespace hortator::tools {

/// Strong: the same total work on more ranks. Weak: the same work for each rank.
enum class Growth { strong, weak };
std::string_view to_string(Growth growth);

struct ScalePlan {
  Growth growth = Growth::strong;
  std::vector<int> nodes = {};  ///< of the sizes, ascending; empty: the sizes are in ranks
  std::vector<int> ranks = {};  ///< of the sizes, ascending
  int repeats = 3;
  std::string program = "";               ///< the executable's checksum
  std::vector<std::string> command = {};  ///< the program and its arguments
  std::vector<std::string> launch = {};   ///< flags of `hortator launch`: "--mixed-precision=bf16"
  int cores_per_node = 1;
  std::optional<double> peak_flops = {};  ///< operations per second of a rank's device, as given by the user
};

/// Parses "1,2,4,8". Throws UsageError, which names `option`, unless the numbers are ascending from 1.
std::vector<int> parse_counts(std::string_view list, std::string_view option);

/// One run.
struct ScaleRun {
  int ranks = 1;
  int nodes = 0;  ///< 0: not given
  int repeat = 0;
};
/// The runs of a plan: all sizes, then all again, so that drift over time affects all sizes alike.
std::vector<ScaleRun> runs_of(const ScalePlan& plan);
std::string file_name(const ScaleRun& run);  ///< "point_8_2.json"

/// The number of nodes of a size; 0 if it was not given.
int nodes_of(const ScalePlan& plan, int ranks);

std::string to_json(const ScalePlan& plan);
ScalePlan parse_plan(const std::string& json);  ///< throws Error for invalid text

/// The measurement of one run.
struct ScalePoint {
  ScaleRun run = {};
  observe::Measure measure = {};
  std::string program = "";  ///< the executable's checksum
};
std::string to_json(const ScalePoint& point);
ScalePoint parse_point(const std::string& json);  ///< throws Error for invalid text

/// Throws Error that names missing runs, or what differs between points: versions, devices, the program, the number of
/// ranks.
void check_set(const ScalePlan& plan, const std::vector<ScalePoint>& points);

}  // namespace hortator::tools
