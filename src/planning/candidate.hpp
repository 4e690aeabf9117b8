#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::planning {

enum class Schedule { gpipe, one_f_one_b, interleaved, zero_bubble };

/// How a run could be set up: the settings that the planner chooses.
struct Candidate {
  int data = 1;  ///< ranks that get different batches
  int tensor = 1;
  int context = 1;
  int pipeline = 1;
  int zero = 0;
  bool offload = false;             ///< of the optimizer's state
  bool offload_parameters = false;  ///< at stage 3
  bool recompute = false;
  Schedule schedule = Schedule::one_f_one_b;
  int micro_batches = 1;  ///< of a pipeline

  int ranks() const { return data * tensor * context * pipeline; }
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

std::string_view name_of(Schedule schedule);

/// What a plan may choose from. An axis that the program cannot use has no sizes but 1.
struct Choices {
  int ranks = 1;
  int ranks_per_node = 1;
  bool tensor = true;
  bool context = true;
  bool pipeline = true;
  bool zero = true;
  bool offload = false;
  bool recompute = true;
  int max_tensor = 0;    ///< 0: a node
  int max_context = 0;   ///< 0: a node
  int max_pipeline = 0;  ///< 0: all ranks
};

/// All candidates of these choices, each once. Ranks along tensor and context together stay within a node. Pure.
std::vector<Candidate> candidates(const Choices& choices);

/// The same settings on at most `ranks` ranks: with fewer that get different batches. Nothing where the ranks of the
/// other axes are more. Pure.
std::optional<Candidate> on_at_most(Candidate candidate, int ranks);

/// The flags of `hortator launch` for a candidate: "--tensor 8 --zero-stage 3".
std::string launch_flags(const Candidate& candidate);
/// The same as variables of the program's environment: "HORTATOR_TENSOR=8".
std::vector<std::string> variables(const Candidate& candidate);

}  // namespace hortator::planning
