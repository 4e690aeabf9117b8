#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/watchdog/stall.hpp"

namespace hortator::runtime {

/// A stall as people read it.
struct StallReport {
  const Slot* culprit;  ///< whose line it is
  std::string problem;  ///< to be read after "rank N (host): "
  std::string details;  ///< lines: each rank in question, with its stack
};

/// `silent_nodes` have given no word. `note` says what else limits the view; empty: nothing. Pure.
StallReport describe(const Stall& stall, std::span<const int> silent_nodes, const std::string& note);

/// "0-2, 5": at most eight pieces.
std::string ranges_of(std::span<const int> numbers);

}  // namespace hortator::runtime
