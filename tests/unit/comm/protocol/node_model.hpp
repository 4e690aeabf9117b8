#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// A model of the protocol by which the ranks of a node take part in collectives through shared memory: NodeBoard,
/// NodeTeam and NodeCommunicator (src/comm/shm). It follows their loads and stores of shared counters and memory one by
/// one: a change of their order there is one of this model too.
///
/// A write to a buffer takes two steps, so that another rank's read can meet a half-written one. A read takes one: if
/// it could overlap a write, it meets the write's middle in one of the interleavings. A wait for the counters of all
/// ranks takes one: they only increase.
namespace hortator::test::protocol {

/// How a collective uses memory.
enum class Call {
  window,   ///< each rank reads its slice from all ranks' memory, and writes the result to all ranks' memory
  staged,   ///< two blocks through staging memory, read whole by all ranks
  slices,   ///< a block through staging memory, reduced by slices
  refused,  ///< the last rank posts that it cannot take part
};

/// Steps of the protocol that can be left out, to see that the model finds what they prevent.
struct Rules {
  bool frees_posts_late = true;       ///< a post is overwritten once all ranks are done with it
  bool arrives_after_posting = true;  ///< the post is written before the counter
  bool waits_for_arrival = true;
  bool waits_for_done = true;  ///< before the caller uses its tensors again
  bool done_after_part = true;
  bool meets_before_reading = true;
  bool meets_after_reducing = true;
  bool alternates_halves = true;
  bool looks_for_aborts = true;
};

enum class Fault {
  none,
  abandoned,  ///< one of the ranks leaves before any of its steps, and publishes it
  killed,     ///< one of the ranks ends before any of its steps
};

struct Model {
  int ranks = 2;
  /// Calls of one group are started one after the other, then completed. At most `kept` calls.
  std::vector<std::vector<Call>> groups;
  Fault fault = Fault::none;
  Rules rules = {};
  static constexpr int kept = 2;  ///< NodeBoard::kept
};

struct Exploration {
  std::string broken = {};  ///< the first property that does not hold, with the steps that led there; empty: all hold
  long states = 0;
  long faults = 0;    ///< ends in which a rank has left or was killed
  long blocked = 0;   ///< ends in which a rank waits for ever
  long finished = 0;  ///< ends in which all ranks have completed all calls
};

/// Visits every state that `model` can reach.
Exploration explore(const Model& model);

}  // namespace hortator::test::protocol
