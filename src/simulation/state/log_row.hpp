#pragma once

#include <cstdint>
#include <functional>
#include <hortator/training/progress.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hortator::simulation {

/// Collects the numbers of one step of a simulation into one row for the trackers.
class LogRow {
 public:
  using Numbers = std::vector<std::pair<std::string, Loggable>>;
  /// `write` gets a row that is complete, and its step if it has one.
  using Write = std::function<void(const Numbers& numbers, std::optional<std::int64_t> step)>;
  explicit LogRow(Write write) : write_(std::move(write)) {}

  /// Adds a number to the row of `step`, or to the present one. Writes the row before if this number begins another: it
  /// belongs to another step, or the row has its name. Throws UsageError for a name of the trackers' own.
  void add(std::optional<std::int64_t> step, const std::string& name, double number);
  /// Writes the present row, if it has numbers.
  void flush();

 private:
  bool has(const std::string& name) const;

  Write write_;
  Numbers numbers_ = {};
  std::optional<std::int64_t> step_ = {};
};

}  // namespace hortator::simulation
