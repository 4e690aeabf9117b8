#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/watchdog/stall.hpp"

namespace hortator::runtime {

/// A stall as text for users.
struct StallReport {
  const RankRecord* culprit;  ///< the rank that the line names
  std::string problem;        ///< to be read after "rank N (host): "
  std::string details;        ///< lines: each rank concerned, with its stack
  std::string where = {};     ///< program_call() of the culprit
  std::string type = {};      ///< the kind of stall and the culprit's state, in two words: "absent vanished"
};

/// What the program has called, as a stack (innermost call first) shows it: "hortator::Accelerator::gather, called in
/// train+0x2f41". Empty if the stack has no function of Hortator.
std::string program_call(std::span<const std::string> stack);

/// `silent_nodes` have not answered. `note` gives other limits of the diagnosis; it may be empty. Pure.
StallReport describe(const Stall& stall, std::span<const int> silent_nodes, const std::string& note);

/// "0-2, 5", with at most eight ranges.
std::string ranges_of(std::span<const int> numbers);

}  // namespace hortator::runtime
