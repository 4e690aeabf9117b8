#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What a run has logged, out of NAME.jsonl: pure, the caller reads the file.
namespace hortator::tools {

struct MetricRow {
  std::int64_t step = 0;
  double time = 0;  ///< seconds since 1970
  std::vector<std::pair<std::string, double>> values = {};

  std::optional<double> find(std::string_view name) const;
};

/// Nothing for what is no row.
std::optional<MetricRow> parse_metric_row(std::string_view row);

/// The bytes of a file from a place on: at most so many, fewer at its end.
using ReadAt = std::function<std::string(std::uint64_t from, std::size_t bytes)>;

/// About `count` rows, evenly spread over a file of `size` bytes, and the last few. Their number decides the work, not
/// the file's size.
std::vector<MetricRow> sample_rows(const ReadAt& read, std::uint64_t size, std::size_t count);

/// A curve of at most `most` points: neighbours are averaged.
struct Curve {
  std::vector<double> x = {};
  std::vector<double> y = {};
};
Curve thinned(const Curve& curve, std::size_t most);

/// Steps a second along the rows, between rows some way apart; not across the time that no process ran.
Curve rate_of(const std::vector<MetricRow>& rows, std::size_t most);

}  // namespace hortator::tools
