#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The rows that a run has logged in NAME.jsonl. The caller reads the file.
namespace hortator::tools {

struct MetricRow {
  std::int64_t step = 0;
  double time = 0;  ///< seconds since 1970
  std::vector<std::pair<std::string, double>> values = {};

  std::optional<double> find(std::string_view name) const;
};

/// Returns nothing if `row` is not a valid row.
std::optional<MetricRow> parse_metric_row(std::string_view row);

/// Reads up to `bytes` bytes of a file from an offset; fewer at the end of the file.
using ReadAt = std::function<std::string(std::uint64_t from, std::size_t bytes)>;

/// About `count` rows, evenly spread over a file of `size` bytes, and the last few rows. The cost depends on `count`,
/// not on the size of the file.
std::vector<MetricRow> sample_rows(const ReadAt& read, std::uint64_t size, std::size_t count);

struct Curve {
  std::vector<double> x = {};
  std::vector<double> y = {};
};
/// The curve with at most `max_points` points: neighbours are averaged.
Curve thinned(const Curve& curve, std::size_t max_points);

/// Steps per second along the rows, in about `max_points` points. Pauses between two processes of the run do not count.
Curve rate_of(const std::vector<MetricRow>& rows, std::size_t max_points);

}  // namespace hortator::tools
