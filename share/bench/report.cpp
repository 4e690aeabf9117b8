#include "bench/report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iomanip>
#include <sstream>

#include "core/text/text.hpp"

namespace hortator::bench {
namespace {

using Row = std::vector<std::string>;

std::string fixed(double value, const char* format) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

std::string params_text(const nlohmann::json& params) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : params.items()) {
    parts.push_back(name + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return text::join(parts, " ");
}

std::string rate_text(double bytes_per_s) { return bytes_per_s > 0 ? fixed(bytes_per_s / 1e9, "%.2f") : "-"; }

std::string range_text(const PairedTiming& timing) {
  if (timing.runs < min_for_range) return "-";
  return fixed(timing.ratio_range.low, "%.3f") + ".." + fixed(timing.ratio_range.high, "%.3f");
}

Row row(const Result& result, bool with_rates) {
  const auto& timing = result.timing;
  Row cells = {result.name,
               params_text(result.params),
               time_text(timing.ours.median_s),
               time_text(timing.ours.min_s),
               result.reference,
               time_text(timing.reference.median_s),
               fixed(timing.ratio, "%.3f"),
               range_text(timing),
               std::to_string(timing.runs)};
  if (with_rates) {
    cells.push_back(rate_text(result.algorithm_bytes_per_s));
    cells.push_back(rate_text(result.bus_bytes_per_s));
  }
  return cells;
}

std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& cells : rows) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::ostringstream out;
  for (const auto& cells : rows) {
    for (std::size_t i = 0; i + 1 < cells.size(); ++i)
      out << std::left << std::setw(static_cast<int>(widths[i]) + 2) << cells[i];
    out << cells.back() << '\n';
  }
  return std::move(out).str();
}

}  // namespace

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fixed(seconds * 1e6, "%.1f us");
  if (seconds < 1) return fixed(seconds * 1e3, "%.2f ms");
  return fixed(seconds, "%.2f s");
}

std::string json_line(const Result& result) {
  const auto& timing = result.timing;
  nlohmann::json line = {{"name", result.name},
                         {"params", result.params},
                         {"reference", result.reference},
                         {"reference_median_s", timing.reference.median_s},
                         {"reference_min_s", timing.reference.min_s},
                         {"median_s", timing.ours.median_s},
                         {"min_s", timing.ours.min_s},
                         {"ratio", timing.ratio},
                         {"runs", timing.runs}};
  if (timing.runs >= min_for_range) {
    line["ratio_low"] = timing.ratio_range.low;
    line["ratio_high"] = timing.ratio_range.high;
  }
  if (result.algorithm_bytes_per_s > 0) {
    line["algorithm_gb_per_s"] = result.algorithm_bytes_per_s / 1e9;
    line["bus_gb_per_s"] = result.bus_bytes_per_s / 1e9;
  }
  if (result.copying_s > 0) {
    line["copying_s"] = result.copying_s;
    line["reducing_s"] = result.reducing_s;
    line["waiting_s"] = result.waiting_s;
    line["imbalance_s"] = result.imbalance_s;
  }
  if (result.samples_per_s > 0) line["samples_per_s"] = result.samples_per_s;
  return line.dump();
}

std::string table(const std::vector<Result>& results) {
  const bool with_rates = std::any_of(results.begin(), results.end(),
                                      [](const Result& result) { return result.algorithm_bytes_per_s > 0; });
  std::vector<Row> rows = {{"name", "parameters", "median", "min", "reference", "median", "ratio", "95 %", "runs"}};
  if (with_rates) rows.front().insert(rows.front().end(), {"GB/s", "bus GB/s"});
  for (const auto& result : results) rows.push_back(row(result, with_rates));
  return aligned(rows);
}

}  // namespace hortator::bench
