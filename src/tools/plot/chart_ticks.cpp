#include "tools/plot/chart_ticks.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "core/text/print.hpp"

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

Axis linear_axis(double least, double greatest, int wanted) {
  if (!(greatest > least)) {
    const double room = least == 0 ? 1 : std::abs(least) / 2;
    least -= room;
    greatest += room;
  }
  const double step = round_step(greatest - least, wanted);
  Axis axis{.least = step * std::floor(least / step + 1e-9), .greatest = step * std::ceil(greatest / step - 1e-9)};
  for (double i = std::round(axis.least / step); i * step <= axis.greatest + step / 2; ++i)
    axis.ticks.push_back(i * step);
  return axis;
}

Axis logarithmic_axis(double least, double greatest, int wanted) {
  const double base = greatest / least <= 1024 ? 2 : 10;
  const double first = std::floor(std::log(least) / std::log(base) + 1e-9);
  const double last = std::max(std::ceil(std::log(greatest) / std::log(base) - 1e-9), first + 1);
  Axis axis{.least = std::pow(base, first), .greatest = std::pow(base, last), .scale = Scale::logarithmic};
  const double stride = std::max(1.0, std::ceil((last - first) / (2 * wanted)));
  for (double power = first; power <= last; power += stride) axis.ticks.push_back(std::pow(base, power));
  return axis;
}

struct Unit {
  double size;
  const char* name;
};

Unit unit_of(const std::vector<double>& ticks) {
  double greatest = 0;
  for (const double tick : ticks) greatest = std::max(greatest, std::abs(tick));
  if (greatest >= 1e9) return {1e9, "G"};
  if (greatest >= 1e6) return {1e6, "M"};
  return greatest >= 1e4 ? Unit{1e3, "k"} : Unit{1, ""};
}

// On a logarithmic axis each tick is told by itself: its neighbours are of other sizes.
std::string own_label(double tick) {
  const auto unit = unit_of({tick});
  auto label = core::print("%.4g%s", tick / unit.size, unit.name);
  const auto zero = label.find("e-0");
  if (zero != std::string::npos) label.erase(zero + 2, 1);
  return label;
}

std::vector<std::string> common_labels(const std::vector<double>& ticks) {
  const auto unit = unit_of(ticks);
  const bool is_tiny = std::all_of(ticks.begin(), ticks.end(), [](double tick) { return std::abs(tick) < 1e-3; });
  std::vector<std::string> labels;
  for (int digits = 0; digits <= 6; ++digits) {
    labels.clear();
    bool exact = true;
    for (const double tick : ticks) {
      const double shown = tick / unit.size;
      auto label = tick == 0 ? "0" : core::print(is_tiny ? "%.*e%s" : "%.*f%s", digits, shown, unit.name);
      exact &= is_tiny || std::abs(std::stod(label) - shown) <= 1e-6 * std::abs(shown) + 1e-12;
      labels.push_back(std::move(label));
    }
    const std::set<std::string> different(labels.begin(), labels.end());
    if (exact && different.size() == labels.size()) break;
  }
  return labels;
}

}  // namespace

double Axis::place_of(double value) const {
  if (scale == Scale::linear) return (value - least) / (greatest - least);
  return std::log(value / least) / std::log(greatest / least);
}

Axis axis_of(const std::vector<double>& values, Scale scale, int wanted) {
  std::vector<double> usable;
  std::copy_if(values.begin(), values.end(), std::back_inserter(usable),
               [&](double value) { return std::isfinite(value) && (scale == Scale::linear || value > 0); });
  if (usable.empty()) usable = {scale == Scale::linear ? 0.0 : 1.0};
  const auto [least, greatest] = std::minmax_element(usable.begin(), usable.end());
  return scale == Scale::linear ? linear_axis(*least, *greatest, wanted) : logarithmic_axis(*least, *greatest, wanted);
}

std::vector<std::string> labels_of(const Axis& axis) {
  if (axis.scale == Scale::linear) return common_labels(axis.ticks);
  std::vector<std::string> labels;
  std::transform(axis.ticks.begin(), axis.ticks.end(), std::back_inserter(labels), own_label);
  return labels;
}

}  // namespace hortator::tools
