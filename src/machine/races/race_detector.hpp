#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "machine/races/byte_pattern.hpp"
#include "machine/races/clock.hpp"

namespace hortator::machine {

/// Who uses memory. Both members live as long as the process.
struct MemoryUser {
  std::string_view name;       ///< of an operator
  const void* site = nullptr;  ///< the return address of its call in the program; null: unknown
};

/// A use of bytes of a block.
struct Access {
  PatternedRange bytes = {};
  int timeline = host_timeline;
  std::uint64_t tick = 0;
  MemoryUser user = {};
};

/// The last uses of a block's bytes that later uses must come after.
struct AccessHistory {
  std::vector<Access> writes;
  std::vector<Access> reads;
  void clear() { writes.clear(), reads.clear(); }
};

/// Finds two uses of the same bytes, at least one of them a write, that no event or wait of the host puts in order.
/// All threads of the host are one timeline: the locks by which they hand over work are not visible here, and a finding
/// must be certain. The caller serialises the calls.
class RaceDetector {
 public:
  /// What findings call a timeline; by default "stream 3".
  void name_timeline(int timeline, std::string name) { names_[timeline] = std::move(name); }

  /// The next work of a stream is submitted: it comes after all that the host has waited for.
  void submit(int stream);
  /// Work of `timeline` that has just been submitted uses bytes of a block.
  void use(AccessHistory& block, int timeline, const MemoryUser& user, const PatternedRange& bytes, bool writes);

  Clock clock_of(int stream) const;
  void order_stream_after(int stream, const Clock& clock);
  void order_host_after(const Clock& clock) { join(host_, clock); }

  void add_finding(std::string finding);
  /// The findings since the last call, each pair of users once.
  std::vector<std::string> take_findings();

 private:
  Clock& clock(int timeline);
  std::string describe(const Access& access) const;
  void compare(const Access& earlier, const Access& now, std::string_view kind);
  void forget_ordered(std::vector<Access>& accesses) const;

  Clock host_;
  std::vector<Clock> streams_;  ///< by timeline; the first is unused
  std::map<int, std::string> names_;
  std::vector<std::string> findings_;
  std::set<std::string> known_;
};

}  // namespace hortator::machine
