#include "tools/charts/chart_ticks.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

double round_step(double span, int wanted) {
  const double rough = span / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

Axis linear_axis(double min, double max, int wanted) {
  // Within a span of some roundings, such as that of means of equal numbers, there are no round numbers.
  const double largest = std::max(std::abs(min), std::abs(max));
  if (!(max - min > 1e-12 * largest)) {
    const double padding = largest == 0 ? 1 : largest / 2;
    min -= padding;
    max += padding;
  }
  const double step = round_step(max - min, wanted);
  Axis axis{.min = step * std::floor(min / step + 1e-9), .max = step * std::ceil(max / step - 1e-9)};
  for (double i = std::round(axis.min / step); i * step <= axis.max + step / 2; ++i) axis.ticks.push_back(i * step);
  return axis;
}

Axis logarithmic_axis(double min, double max, int wanted) {
  const double base = max / min <= 1024 ? 2 : 10;
  const double first = std::floor(std::log(min) / std::log(base) + 1e-9);
  const double last = std::max(std::ceil(std::log(max) / std::log(base) - 1e-9), first + 1);
  Axis axis{.min = std::pow(base, first), .max = std::pow(base, last), .scale = Scale::logarithmic};
  const double stride = std::max(1.0, std::ceil((last - first) / (2 * wanted)));
  for (double power = first; power <= last; power += stride) axis.ticks.push_back(std::pow(base, power));
  return axis;
}

struct Unit {
  double size;
  const char* name;
};

Unit unit_of(const std::vector<double>& ticks) {
  double max = 0;
  for (const double tick : ticks) max = std::max(max, std::abs(tick));
  if (max >= 1e9) return {1e9, "G"};
  if (max >= 1e6) return {1e6, "M"};
  return max >= 1e4 ? Unit{1e3, "k"} : Unit{1, ""};
}

// On a logarithmic axis each tick has a unit of its own: its neighbours are of other magnitudes.
std::string own_label(double tick) {
  const auto unit = unit_of({tick});
  auto label = text::print("%.4g%s", tick / unit.size, unit.name);
  const auto zero = label.find("e-0");
  if (zero != std::string::npos) label.erase(zero + 2, 1);
  return label;
}

std::vector<std::string> common_labels(const std::vector<double>& ticks) {
  const auto unit = unit_of(ticks);
  const bool is_tiny = std::ranges::all_of(ticks, [](double tick) { return std::abs(tick) < 1e-3; });
  std::vector<std::string> labels;
  for (int digits = 0; digits <= 6; ++digits) {
    labels.clear();
    bool exact = true;
    for (const double tick : ticks) {
      const double shown = tick / unit.size;
      auto label = tick == 0 ? "0" : text::print(is_tiny ? "%.*e%s" : "%.*f%s", digits, shown, unit.name);
      exact &= is_tiny || std::abs(std::stod(label) - shown) <= 1e-6 * std::abs(shown) + 1e-12;
      labels.push_back(std::move(label));
    }
    const std::set<std::string> different(labels.begin(), labels.end());
    if (exact && different.size() == labels.size()) break;
  }
  return labels;
}

}  // namespace

double Axis::fraction_of(double value) const {
  if (scale == Scale::linear) return (value - min) / (max - min);
  return std::log(value / min) / std::log(max / min);
}

Axis axis_of(const std::vector<double>& values, Scale scale, int wanted) {
  std::vector<double> usable;
  std::ranges::copy_if(values, std::back_inserter(usable),
                       [&](double value) { return std::isfinite(value) && (scale == Scale::linear || value > 0); });
  if (usable.empty()) usable = {scale == Scale::linear ? 0.0 : 1.0};
  const auto [min, max] = std::ranges::minmax_element(usable);
  return scale == Scale::linear ? linear_axis(*min, *max, wanted) : logarithmic_axis(*min, *max, wanted);
}

std::vector<std::string> labels_of(const Axis& axis) {
  if (axis.scale == Scale::linear) return common_labels(axis.ticks);
  std::vector<std::string> labels;
  std::ranges::transform(axis.ticks, std::back_inserter(labels), own_label);
  return labels;
}

}  // namespace hortator::tools
