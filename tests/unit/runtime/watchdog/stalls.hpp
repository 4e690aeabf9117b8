#pragma once

#include <string>
#include <vector>

#include "runtime/watchdog/stall.hpp"
#include "runtime/watchdog/stall_report.hpp"

/// Ranks in the situations that the watchdog distinguishes.
namespace hortator::stalls {

using runtime::find_stall;
using runtime::RankLife;
using runtime::RankRecord;
using runtime::Stall;
using runtime::StallKind;
using runtime::StallLimits;

inline constexpr std::uint64_t world = 7;
inline constexpr std::uint64_t tensors = 8;
inline constexpr StallLimits patience = {.limit = 100, .for_the_gone = 10, .for_a_circle = 5};

// A rank that has begun the given number of collectives of the world's communicator, and is in none.
inline RankRecord busy(int rank, std::uint64_t entered) {
  return {.rank = rank,
          .host = "n" + std::to_string(rank / 2),
          .pid = 1000 + rank,
          .outside_seconds = 12,
          .standings = {{.communicator = world, .entered = entered}}};
}

inline RankRecord waiting(int rank, std::uint64_t sequence, double seconds, const std::string& name = "barrier",
                          int size = 4) {
  auto slot = busy(rank, sequence);
  slot.wait = {.name = name, .communicator = world, .sequence = sequence, .size = size, .seconds = seconds};
  return slot;
}

inline std::vector<int> ranks_of(const std::vector<const RankRecord*>& slots) {
  std::vector<int> ranks;
  for (const auto* slot : slots) ranks.push_back(slot->rank);
  return ranks;
}

inline std::string text(const std::vector<RankRecord>& slots, const std::vector<int>& silent = {}) {
  const auto stall = find_stall(slots, patience);
  return stall ? runtime::describe(*stall, silent, "").problem : "";
}

inline RankRecord in_state(RankRecord slot, RankLife life) {
  slot.life = life;
  return slot;
}

// A rank whose process continues, while its device is at an operation of `tensors`, or before it.
inline RankRecord with_device(int rank, std::uint64_t entered, std::uint64_t sequence, bool is_its_turn,
                              double seconds = 130) {
  auto slot = busy(rank, 4);
  slot.standings.push_back({.communicator = tensors, .entered = entered});
  slot.device = {.name = "all_reduce", .communicator = tensors, .sequence = sequence, .is_its_turn = is_its_turn};
  if (is_its_turn)
    slot.wait = {.name = "all_reduce",
                 .bytes = 16,
                 .communicator = tensors,
                 .sequence = sequence,
                 .size = 3,
                 .seconds = seconds};
  return slot;
}

inline constexpr std::uint64_t others = 9;

// The record of one thread, which is in one of three communicators and has come to no further collective of the others.
inline RankRecord blocked(int rank, std::uint64_t communicator, double seconds, int size = 3) {
  auto slot = busy(rank, 4);
  slot.standings = {{.communicator = world, .entered = 4},
                    {.communicator = tensors, .entered = 4},
                    {.communicator = others, .entered = 4}};
  for (auto& standing : slot.standings) standing.entered += standing.communicator == communicator ? 1 : 0;
  slot.wait = {.name = "barrier", .communicator = communicator, .sequence = 5, .size = size, .seconds = seconds};
  slot.has_one_thread = true;
  return slot;
}

inline RankRecord in_phase(RankRecord slot, activity::Phase phase) {
  slot.phase = phase;
  return slot;
}

}  // namespace hortator::stalls
