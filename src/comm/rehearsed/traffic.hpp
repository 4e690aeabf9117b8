#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hortator::comm {

/// What one rank sends in one group and verb.
struct Traffic {
  std::vector<int> members;  ///< of the world, in the group's order
  std::string verb;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  ///< of the tensors
  std::uint64_t sent = 0;   ///< by this rank: rings of equal shares for reductions and gathers
};

/// The share of a tensor of `bytes` that one of `ranks` ranks sends in a collective. Pure. `verb` is a name of
/// Communicator's.
std::uint64_t sent_bytes(const std::string& verb, std::uint64_t bytes, int ranks);

/// Adds a collective of a rehearsal. Thread-safe.
void note_traffic(const std::vector<int>& members, const std::string& verb, std::uint64_t bytes, std::uint64_t sent);
/// All that was added since the start, or since it was forgotten.
std::vector<Traffic> noted_traffic();
void forget_traffic();

}  // namespace hortator::comm
