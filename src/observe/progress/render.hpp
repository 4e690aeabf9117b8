#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The state of a loop as a line of text. Pure functions.
namespace hortator::observe {

struct Snapshot {
  std::string title = "";
  std::int64_t done = 0;
  std::int64_t total = 0;  ///< below 0: unknown
  double elapsed = 0;      ///< seconds
  double per_second = 0;   ///< steps; 0: not known yet
  bool is_over = false;    ///< no remaining time is shown
  std::vector<std::pair<std::string, double>> values = {};
};

/// "epoch 0  45% [=====>      ]  450/1000  12.3/s  0:36, 0:44 left  loss 0.123", at most `columns` wide (each
/// UTF-8 character counts once). Items that do not fit are dropped from the right, and the bar takes the remaining
/// room. Without a total there is no bar.
std::string bar_line(const Snapshot& snapshot, int columns);

/// "epoch 0: 450/1000 (45%), 12.3/s, 0:36, 0:44 left, loss 0.123"
std::string log_line(const Snapshot& snapshot);

}  // namespace hortator::observe
