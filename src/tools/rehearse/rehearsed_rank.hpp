#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hortator::tools {

/// Where nothing says how many ranks a node has, and the run has that many.
inline constexpr int usual_ranks_of_a_node = 8;

/// The world of a rehearsal, and the program.
struct RehearsalPlan {
  int ranks = 1;
  int ranks_of_a_node = 1;
  std::vector<std::string> command;
  std::vector<std::string> variables = {};  ///< of the program: "HORTATOR_TENSOR=8"
};

/// What rehearsing one rank has shown.
struct RehearsedRank {
  int rank = 0;
  int code = 0;                        ///< of the program
  nlohmann::ordered_json report = {};  ///< null where the program did not come to its second update
  std::string output = "";             ///< of the program, its end
  double seconds = 0;
};

/// Runs the program as one rank of the world. Other stages of a pipeline send it what rank 0 would send.
RehearsedRank rehearse_rank(const RehearsalPlan& plan, int rank);

}  // namespace hortator::tools
