#include "report/scale_report.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "base/units.hpp"
#include "report/column.hpp"
#include "report/print.hpp"

namespace hortator::report {
namespace {

constexpr int sure_factor = 4;  // times the largest size: the model's own word
constexpr int far_factor = 16;  // drawn, and called extrapolated

using Cells = std::vector<std::string>;

std::string time_text(double seconds) { return units::duration(std::chrono::duration<double>(seconds)); }

double half_range(const ScaleSize& size) { return (size.greatest - size.least) / 2; }

Cells heading() {
  return {"nodes", "ranks", "time", "spread", "speed-up", "efficiency", "core hours", "model", "left out"};
}

std::string against(const ScaleSize& size, std::optional<double> predicted) {
  return predicted ? print("%s (%+.0f %%)", time_text(*predicted).c_str(), 100 * (*predicted / size.seconds - 1)) : "";
}

Cells row(const Study& study, std::size_t i) {
  const auto& size = study.sizes[i];
  const ScaleModel model(study.setting, study.sizes);
  const double relative = half_range(size) / size.seconds;
  const double share = efficiency(study, size.seconds, size.ranks);
  return {std::to_string(size.nodes),
          std::to_string(size.ranks),
          time_text(size.seconds),
          print("+-%.1f %%", 100 * relative),
          print("%.2f", speed_up(study, size.seconds, size.ranks)),
          print("%.0f %% +-%.1f", 100 * share, 100 * share * relative),
          print("%.3g", size.core_hours),
          against(size, model.seconds(size.ranks)),
          against(size, left_out(study.setting, study.sizes, i))};
}

std::vector<Cells> rows(const Study& study) {
  std::vector<Cells> all = {heading()};
  for (std::size_t i = 0; i < study.sizes.size(); ++i) all.push_back(row(study, i));
  return all;
}

/// Along powers of two between two sizes.
std::vector<double> sizes_between(double from, double to) {
  std::vector<double> sizes;
  for (double ranks = from; ranks < to; ranks *= 2) sizes.push_back(ranks);
  sizes.push_back(to);
  return sizes;
}

Series modelled(const Study& study, const char* label, double from, double to, bool dashed,
                double (*value)(const Study&, double, int)) {
  const ScaleModel model(study.setting, study.sizes);
  Series series{.label = label, .dashed = dashed};
  for (const double ranks : sizes_between(from, to)) {
    const int count = static_cast<int>(std::lround(ranks));
    series.x.push_back(count);
    series.y.push_back(value(study, model.seconds(count), count));
  }
  return series;
}

Panel panel_of(const Study& study, double (*value)(const Study&, double, int), Panel panel) {
  const double smallest = study.sizes.front().ranks;
  const double largest = study.sizes.back().ranks;
  Series measured{.label = "measured", .has_dots = true, .has_line = false};
  for (const auto& size : study.sizes) {
    const double here = value(study, size.seconds, size.ranks);
    measured.x.push_back(size.ranks);
    measured.y.push_back(here);
    measured.spread.push_back(here * half_range(size) / size.seconds);
  }
  Series ideal{.label = "ideal", .dashed = true};
  for (const double ranks : sizes_between(smallest, sure_factor * largest)) {
    ideal.x.push_back(ranks);
    ideal.y.push_back(value(study,
                            study.sizes.front().seconds * (study.plan.growth == Growth::strong ? smallest / ranks : 1),
                            static_cast<int>(std::lround(ranks))));
  }
  panel.x_label = "ranks";
  panel.x_scale = Scale::logarithmic;
  panel.series = {measured, modelled(study, "model", smallest, sure_factor * largest, false, value),
                  modelled(study, "extrapolated", sure_factor * largest, far_factor * largest, true, value), ideal};
  return panel;
}

}  // namespace

Study study_of(const ScalePlan& plan, const std::vector<ScalePoint>& points, const Network& network) {
  check_set(plan, points);
  const auto& first = points.front().measure;
  Study study{.plan = plan, .sizes = sizes_of(plan, points)};
  const auto& smallest = study.sizes.front();
  study.setting = {.growth = plan.growth,
                   .network = network,
                   .gradient_bytes = static_cast<double>(first.gradient_bytes),
                   .cores_per_node = plan.cores_per_node,
                   .cores_per_rank = first.seconds > 0 ? first.cpu_seconds / first.seconds : 0};
  if (!plan.nodes.empty()) study.setting.ranks_per_node = (smallest.ranks + smallest.nodes - 1) / smallest.nodes;
  return study;
}

double efficiency(const Study& study, double seconds, int ranks) {
  const auto& smallest = study.sizes.front();
  const double ideal =
      study.plan.growth == Growth::strong ? smallest.seconds * smallest.ranks / ranks : smallest.seconds;
  return ideal / seconds;
}

double speed_up(const Study& study, double seconds, int ranks) {
  return efficiency(study, seconds, ranks) * ranks / study.sizes.front().ranks;
}

std::string scale_table(const Study& study) {
  const auto all = rows(study);
  std::vector<int> widths(all.front().size(), 0);
  for (const auto& cells : all) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], width_of(cells[i]));
  }
  std::string table;
  for (const auto& cells : all) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      line += cells[i];
      if (i + 1 < cells.size()) line.append(static_cast<std::size_t>(widths[i] - width_of(cells[i]) + 2), ' ');
    }
    table += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return table;
}

std::vector<Panel> scale_panels(const Study& study) {
  return {panel_of(study, speed_up,
                   {.title = text::concat("Speed-up, ", to_string(study.plan.growth), " scaling"),
                    .y_label = "times the smallest run",
                    .y_scale = Scale::logarithmic}),
          panel_of(study, efficiency, {.title = "Efficiency", .y_label = "share of the ideal", .from_zero = true})};
}

std::string scale_markdown(const Study& study, const std::string& picture) {
  std::string page = text::concat("# Scaling of `", text::join(study.plan.words, " "), "`\n\n",
                                  study.plan.growth == Growth::strong
                                      ? "Strong scaling: the same work by more ranks; times are of all updates.\n\n"
                                      : "Weak scaling: as much work for each rank; times are of one update.\n\n");
  for (const auto& cells : rows(study)) {
    page += "| " + text::join(cells, " | ") + " |\n";
    if (cells == heading())
      page.append("|")
          .append([&] {
            std::string line;
            for (std::size_t i = 0; i < cells.size(); ++i) line += "---|";
            return line;
          }())
          .append("\n");
  }
  const ScaleModel model(study.setting, study.sizes);
  const auto& network = study.setting.network;
  const int largest = study.sizes.back().ranks;
  page += text::concat("\nTimes are medians of ", text::count(study.plan.repeats, "run"),
                       ", spreads half the range. Compared with ", text::count(study.sizes.front().ranks, "rank"),
                       ".\n\n![](", picture, ")\n\n## The model\n\n",
                       "Compute is the smallest run's. An all-reduce of the gradients (",
                       units::bytes(static_cast<std::uint64_t>(study.setting.gradient_bytes)), ") over ",
                       text::count(network.ranks, "rank"), " takes ", print("%.1f us", 1e6 * network.latency), " and ",
                       print("%.3g s", network.seconds_per_byte * 1e9), " a GB (`hortator bench collectives`); ",
                       print("%.0f %%", 100 * model.overlap()),
                       " of it hides behind compute: fitted. \"left out\" is what the model says ",
                       "of a size that it was not shown. Beyond ", text::count(sure_factor * largest, "rank"), " (",
                       sure_factor, " times the largest size measured) the curve is extrapolated.\n");
  return page;
}

}  // namespace hortator::report
