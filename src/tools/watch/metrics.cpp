#include "tools/watch/metrics.hpp"

#include <algorithm>
#include <cmath>

#include "core/text/json.hpp"

namespace hortator::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t block = 4096;  // longer than most rows

// The first complete row in a block that may start in the middle of one.
std::optional<MetricRow> first_row(const std::string& bytes, bool at_start) {
  const auto begin = at_start ? 0 : bytes.find('\n') + 1;
  if (!at_start && begin == 0) return {};
  const auto end = bytes.find('\n', begin);
  return end == std::string::npos ? std::nullopt : parse_metric_row(std::string_view(bytes).substr(begin, end - begin));
}

void add_rows(std::vector<MetricRow>& rows, const std::string& bytes) {
  for (std::size_t begin = 0, end = 0; (end = bytes.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (auto row = parse_metric_row(std::string_view(bytes).substr(begin, end - begin)))
      rows.push_back(std::move(*row));
  }
}

double mean(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += values[i];
  return sum / static_cast<double>(end - begin);
}

}  // namespace

std::optional<double> MetricRow::find(std::string_view name) const {
  for (const auto& [key, value] : values) {
    if (key == name) return value;
  }
  return {};
}

std::optional<MetricRow> parse_metric_row(std::string_view row) {
  const auto json = core::parse_record<Json>(row);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number()) return {};
  MetricRow parsed{.step = json["step"].get<std::int64_t>()};
  for (const auto& [name, value] : json.items()) {
    if (name == "step") continue;
    if (name == "time") {
      parsed.time = core::number_of(value);
    } else {
      parsed.values.emplace_back(name, core::number_of(value));
    }
  }
  return parsed;
}

std::vector<MetricRow> sample_rows(const ReadAt& read, std::uint64_t size, std::size_t count) {
  std::vector<MetricRow> rows;
  const std::uint64_t tail = std::min<std::uint64_t>(size, 4 * block);
  if (size <= count * block) {
    add_rows(rows, read(0, size));
    return rows;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = (size - tail) / count * i;
    if (auto row = first_row(read(from, block), from == 0)) rows.push_back(std::move(*row));
  }
  const auto end = read(size - tail, tail);
  add_rows(rows, end.substr(std::min(end.find('\n') + 1, end.size())));
  return rows;
}

Curve thinned(const Curve& curve, std::size_t max_points) {
  const auto count = curve.x.size();
  if (count <= max_points) return curve;
  Curve thin;
  for (std::size_t i = 0; i < max_points; ++i) {
    const auto begin = i * count / max_points;
    const auto end = (i + 1) * count / max_points;
    thin.x.push_back(mean(curve.x, begin, end));
    thin.y.push_back(mean(curve.y, begin, end));
  }
  return thin;
}

Curve rate_of(const std::vector<MetricRow>& rows, std::size_t max_points) {
  Curve curve;
  std::vector<double> seconds;
  for (std::size_t i = 1; i < rows.size(); ++i) seconds.push_back(rows[i].time - rows[i - 1].time);
  if (seconds.empty()) return curve;
  auto sorted = seconds;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  // Only a pause between two processes is this much longer than the median.
  const double pause = std::max(60.0, 100 * sorted[sorted.size() / 2]);

  const std::size_t stride = std::max<std::size_t>(1, rows.size() / std::max<std::size_t>(max_points, 1));
  for (std::size_t i = stride; i < rows.size(); i += stride) {
    double passed = 0;
    for (std::size_t j = i - stride; j < i; ++j) passed += seconds[j] > pause ? 0 : seconds[j];
    const auto steps = static_cast<double>(rows[i].step - rows[i - stride].step);
    if (passed <= 0 || steps <= 0) continue;
    curve.x.push_back(static_cast<double>(rows[i].step));
    curve.y.push_back(steps / passed);
  }
  return curve;
}

}  // namespace hortator::tools
