#include "runtime/watchdog/stall.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace hortator::runtime {
namespace {

using Key = std::pair<std::uint64_t, std::uint64_t>;  // communicator, sequence number

Key key_of(const RankRecord::Wait& wait) { return {wait.communicator, wait.sequence}; }

// How long a small message may be on its way between ranks that are inside MPI.
constexpr double time_of_a_message = 2;
constexpr std::uint64_t small_message = std::uint64_t{1} << 20;

bool is_frozen(const RankRecord& slot) { return slot.life >= RankLife::stopped; }
// The status of a rank that does not run is outdated.
bool waits(const RankRecord& slot) { return slot.wait && !is_frozen(slot); }

bool is_excused(const RankRecord& slot) {
  return slot.life == RankLife::traced || (!is_frozen(slot) && !waits(slot) && activity::is_patient(slot.phase));
}

bool has_on_device(const RankRecord& slot, const Key& key) {
  return slot.device && slot.device->is_its_turn && Key(slot.device->communicator, slot.device->sequence) == key;
}

std::optional<std::uint64_t> entered(const RankRecord& slot, std::uint64_t communicator) {
  for (const auto& standing : slot.standings) {
    if (standing.communicator == communicator) return standing.entered;
  }
  return {};
}

// The rank's process has begun an operation that runs on the other ranks' devices, but its own device has not reached
// it.
bool is_behind_on_device(const RankRecord& slot, const Key& key) {
  if (!slot.device) return false;
  const auto& [name, communicator, sequence, is_its_turn] = *slot.device;
  if (Key(communicator, sequence) == key) return !is_its_turn;
  return communicator != key.first || sequence < key.second;
}

// The number of a communicator's ranks that are not among the slots.
int count_unknown(std::span<const RankRecord> slots, const RankRecord::Wait& wait) {
  const auto known = std::ranges::count_if(
      slots, [&](const RankRecord& slot) { return entered(slot, wait.communicator).has_value(); });
  return std::max(0, wait.size - static_cast<int>(known));
}

using Graph = std::map<Key, std::set<Key>>;  // of collectives, each with those that have to end before it can

bool has_circle(Graph graph) {
  const auto can_end = [&](const Graph::value_type& entry) {
    return std::ranges::none_of(entry.second, [&](const Key& key) { return graph.contains(key); });
  };
  while (std::erase_if(graph, can_end) > 0) continue;
  return !graph.empty();
}

class Search {
 public:
  Search(std::span<const RankRecord> slots, const StallLimits& patience) : slots_(slots), patience_(patience) {
    for (const auto& slot : slots) {
      if (waits(slot)) waiting_[key_of(*slot.wait)].push_back(&slot);
    }
  }

  /// Finds the ranks at the end of every chain of waits that starts in collective `key`. Visits each collective once.
  void follow(const Key& key) {
    if (!visited_.insert(key).second) return;
    order_.push_back(key);
    blame_silenced(key);
    const bool on_device = is_on_device(key);
    std::vector<const RankRecord*> late;
    std::vector<const RankRecord*> frozen;  // has entered it, or even ended it
    for (const auto& slot : slots_) {
      const auto begun = entered(slot, key.first);
      if (begun && (*begun < key.second || (on_device && !is_frozen(slot) && is_behind_on_device(slot, key)))) {
        late.push_back(&slot);
      } else if (begun && is_frozen(slot)) {
        frozen.push_back(&slot);
      }
    }
    if (late.empty() && frozen.empty() && unknown(*waiting_.at(key).front()->wait) == 0) strand(key);
    for (const auto* slot : late.empty() ? frozen : late) {
      if (waits(*slot)) {
        // a rank that waits by its device only, or in one of several threads, may still enter this collective
        if (slot->has_one_thread) blocked_[key].insert(key_of(*slot->wait));
        follow(key_of(*slot->wait));
      } else {
        culprits_.insert(slot);
        // A rank that has left in an orderly way has completed the collectives that it entered.
        hopeless_ = hopeless_ || slot->life == RankLife::vanished || (slot->life == RankLife::left && !late.empty());
      }
    }
  }

  /// Whether any rank waits for a dead one.
  bool is_hopeless() const { return hopeless_; }

  /// Whether ranks wait for each other in a cycle, so that none can continue.
  bool is_circular() const { return has_circle(blocked_); }

  int unknown(const RankRecord::Wait& wait) const { return count_unknown(slots_, wait); }

  // The ranks in each visited collective. Ranks that call it differently are separate sides.
  std::vector<Stall::Side> sides() const {
    std::vector<Stall::Side> all;
    for (const auto& key : order_) {
      std::map<std::pair<std::string, std::uint64_t>, Stall::Side> by_call;
      for (const auto* slot : waiting_.at(key)) {
        auto& side = by_call[{slot->wait->name, slot->wait->bytes}];
        side.wait = *slot->wait;
        side.ranks.push_back(slot);
        side.seconds = std::max(side.seconds, slot->wait->seconds);
      }
      for (auto& [call, side] : by_call) all.push_back(std::move(side));
    }
    for (auto& side : all) std::ranges::sort(side.ranks, {}, &RankRecord::rank);
    return all;
  }

  std::vector<const RankRecord*> culprits() const {
    std::vector<const RankRecord*> all(culprits_.begin(), culprits_.end());
    std::ranges::sort(all, {}, &RankRecord::rank);
    return all;
  }

 private:
  // Whether ranks wait in it by their devices.
  bool is_on_device(const Key& key) const {
    return std::ranges::any_of(waiting_.at(key), [&](const RankRecord* slot) { return has_on_device(*slot, key); });
  }

  // All other ranks have left the collective long enough ago for their messages to have arrived (the root of a
  // broadcast leaves first): no rank answers those that still wait in it. It can only end after what the others wait
  // for.
  void strand(const Key& key) {
    const auto still_waits_for_a_message = [&](const RankRecord* slot) {
      return slot->wait->bytes > small_message ||
             slot->wait->seconds < std::max(patience_.for_a_circle, time_of_a_message);
    };
    if (std::ranges::any_of(waiting_.at(key), still_waits_for_a_message)) return;
    std::set<Key> elsewhere;
    for (const auto& slot : slots_) {
      const auto begun = entered(slot, key.first);
      if (!begun || (waits(slot) && key_of(*slot.wait) == key)) continue;
      if (*begun == key.second || !waits(slot)) return;
      elsewhere.insert(key_of(*slot.wait));
    }
    blocked_[key].insert(elsewhere.begin(), elsewhere.end());
  }

  // A rank that was stopped, killed or held by a debugger right after a communicator was made could not publish that it
  // belongs to it.
  void blame_silenced(const Key& key) {
    if (unknown(*waiting_.at(key).front()->wait) == 0) return;
    for (const auto& slot : slots_) {
      if (slot.life != RankLife::stopped && slot.life != RankLife::vanished && slot.life != RankLife::traced) continue;
      if (entered(slot, key.first)) continue;
      culprits_.insert(&slot);
      hopeless_ = hopeless_ || slot.life == RankLife::vanished;
    }
  }

  std::span<const RankRecord> slots_;
  const StallLimits& patience_;
  std::map<Key, std::vector<const RankRecord*>> waiting_;
  std::set<Key> visited_;
  std::vector<Key> order_;
  std::set<const RankRecord*> culprits_;
  Graph blocked_;
  bool hopeless_ = false;
};

const std::vector<const RankRecord*>& smallest(const std::vector<Stall::Side>& sides) {
  // Among sides of equal size the last: rank 0 is rarely the culprit.
  auto best = sides.begin();
  for (auto side = sides.begin(); side != sides.end(); ++side) {
    const auto rank = side->ranks.front()->rank;
    if (std::tuple(side->ranks.size(), -rank) < std::tuple(best->ranks.size(), -best->ranks.front()->rank)) best = side;
  }
  return best->ranks;
}

// Since when ranks have waited in one collective that they call differently, which no program may do; nothing if they
// have not.
std::optional<double> seconds_of_mismatch(const std::vector<Stall::Side>& sides) {
  for (const auto& one : sides) {
    for (const auto& other : sides) {
      const bool differ = key_of(one.wait) == key_of(other.wait) && one.wait.name != other.wait.name;
      if (differ) return std::min(one.seconds, other.seconds);
    }
  }
  return {};
}

Stall explain(const Search& search) {
  Stall stall{.culprits = search.culprits(), .sides = search.sides()};
  stall.unknown = search.unknown(stall.sides.front().wait);
  if (!stall.culprits.empty() && !seconds_of_mismatch(stall.sides)) return stall;
  if (stall.sides.size() > 1) {
    stall.kind = StallKind::apart;
    stall.culprits = smallest(stall.sides);
  } else {
    stall.kind = stall.unknown > 0 ? StallKind::unknown : StallKind::inside;
    const auto& side = stall.sides.front();
    stall.is_on_devices = std::ranges::all_of(
        side.ranks, [&](const RankRecord* slot) { return has_on_device(*slot, key_of(side.wait)); });
  }
  return stall;
}

// How long all ranks have been in the collective in which none is missing: a rank that came late has just entered it.
double seconds_inside(const Stall::Side& side) {
  return std::ranges::min(side.ranks, {}, [](const RankRecord* slot) { return slot->wait->seconds; })->wait->seconds;
}

bool is_due(const Search& search, const Stall& stall, double seconds, const StallLimits& patience) {
  const auto& culprits = stall.culprits;
  const auto is_traced = [](const RankRecord* slot) { return slot->life == RankLife::traced; };
  for (const auto& side : stall.sides) {
    if (std::ranges::any_of(side.ranks, is_traced)) return false;
  }
  if (search.is_hopeless() && seconds >= patience.for_the_gone) return true;
  if (stall.kind == StallKind::apart && search.is_circular() && seconds >= patience.for_a_circle) return true;
  if (seconds_of_mismatch(stall.sides).value_or(0) >= patience.for_a_circle) return true;
  const auto& side = stall.sides.front();
  if (stall.kind == StallKind::inside) seconds = seconds_inside(side);
  if (seconds < patience.of(side.wait)) return false;
  const auto frozen = [](const RankRecord* slot) { return is_frozen(*slot); };
  const auto excused = [](const RankRecord* slot) { return is_excused(*slot); };
  return stall.kind != StallKind::absent || std::ranges::any_of(culprits, frozen) ||
         std::ranges::none_of(culprits, excused);
}

}  // namespace

std::optional<Stall> find_stall(std::span<const RankRecord> slots, const StallLimits& patience) {
  std::vector<const RankRecord*> waiting;
  for (const auto& slot : slots) {
    if (waits(slot)) waiting.push_back(&slot);
  }
  std::ranges::stable_sort(waiting, std::ranges::greater(), [](const RankRecord* slot) { return slot->wait->seconds; });
  for (const auto* slot : waiting) {
    Search search(slots, patience);
    search.follow(key_of(*slot->wait));
    auto stall = explain(search);
    if (is_due(search, stall, slot->wait->seconds, patience)) return stall;
  }
  return {};
}

bool somebody_waits_for_unknown(std::span<const RankRecord> slots) {
  return std::ranges::any_of(
      slots, [&](const RankRecord& slot) { return waits(slot) && count_unknown(slots, *slot.wait) > 0; });
}

}  // namespace hortator::runtime
