#include "tools/scale/scale_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/text/terminal.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "observe/status/measure.hpp"

namespace hortator::tools {
namespace {

constexpr int extrapolated_factor = 16;  // times the largest size: how far the model is drawn

using Cells = std::vector<std::string>;

std::string time_text(double seconds) { return units::duration(std::chrono::duration<double>(seconds)); }

double half_range(const ScaleSize& size) { return (size.max_seconds - size.min_seconds) / 2; }

/// Optional columns.
bool has_gpus(const Study& study) { return !study.device.empty(); }
bool has_use(const Study& study) { return use_of_peak(study, study.sizes.front()).has_value(); }

/// "312 T" for 312e12.
std::string with_prefix(double number) {
  static constexpr std::array prefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t power = 0;
  for (; number >= 1000 && power + 1 < prefixes.size(); ++power) number /= 1000;
  return text::print("%.4g %s", number, prefixes[power]);
}

bool has_energy(const Study& study) {
  return std::ranges::all_of(study.sizes, [](const ScaleSize& size) { return size.joules > 0; });
}

Cells heading(const Study& study) {
  Cells cells = {"nodes", "ranks", "time", "spread", "speed-up", "efficiency", "core hours"};
  if (has_gpus(study)) cells.emplace_back("GPU hours");
  if (has_energy(study)) cells.emplace_back("energy");
  if (has_use(study)) cells.emplace_back("MFU");
  cells.insert(cells.end(), {"model", "left out"});
  return cells;
}

std::string against(const ScaleSize& size, std::optional<double> predicted) {
  return predicted ? text::print("%s (%+.0f %%)", time_text(*predicted).c_str(), 100 * (*predicted / size.seconds - 1))
                   : "";
}

Cells row(const Study& study, std::size_t i) {
  const auto& size = study.sizes[i];
  const ScaleModel model(study.setting, study.sizes);
  const double relative = half_range(size) / size.seconds;
  const double share = efficiency(study, size.seconds, size.ranks);
  Cells cells = {std::to_string(size.nodes),
                 std::to_string(size.ranks),
                 time_text(size.seconds),
                 text::print("+-%.1f %%", 100 * relative),
                 text::print("%.2f", speed_up(study, size.seconds, size.ranks)),
                 text::print("%.0f %% +-%.1f", 100 * share, 100 * share * relative),
                 text::print("%.3g", size.core_hours)};
  if (has_gpus(study)) cells.push_back(text::print("%.3g", size.gpu_hours));
  if (has_energy(study)) cells.push_back(with_prefix(size.joules) + "J");
  if (has_use(study)) {
    const auto use = use_of_peak(study, size);
    cells.push_back(use ? text::print("%.3g %%", 100 * *use) : "");
  }
  cells.insert(cells.end(),
               {against(size, model.seconds(size.ranks)), against(size, left_out(study.setting, study.sizes, i))});
  return cells;
}

std::string mfu_note(const Study& study) {
  const auto& smallest = study.sizes.front();
  const auto peak = with_prefix(*study.peak_flops) + "FLOP/s";
  return text::concat("Operations of matrix products, convolutions and attention in one update, counted on one ",
                      "rank of the smallest run: ", with_prefix(smallest.flops), "FLOP", ", including recomputation. ",
                      "MFU is their rate divided by the peak of ", peak,
                      study.plan.peak_flops ? std::string(", given by --peak-flops.")
                                            : text::concat(" in 16 bits, from the data sheet of ", study.device, "."));
}

std::string model_note(const Study& study) {
  const ScaleModel model(study.setting, study.sizes);
  const auto& network = study.setting.network;
  return text::concat("Compute time is that of the smallest run. An all-reduce of the gradients (",
                      units::bytes(static_cast<std::uint64_t>(study.setting.gradient_bytes)), ") over ",
                      text::count(network.ranks, "rank"), " takes ", text::print("%.1f us", 1e6 * network.latency),
                      " and ", text::print("%.3g s", network.seconds_per_byte * 1e9),
                      " per GB (`hortator bench collectives`); ", text::print("%.0f %%", 100 * model.overlap()),
                      " of it overlaps with compute (fitted). \"left out\" is the prediction for a size from ",
                      "a model that was fitted without it. Beyond ", text::count(study.sizes.back().ranks, "rank"),
                      ", the largest size measured, the curve is extrapolated and dashed.");
}

/// Powers of two times `from`, up to and including `to`.
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
    const double measured_value = value(study, size.seconds, size.ranks);
    measured.x.push_back(size.ranks);
    measured.y.push_back(measured_value);
    measured.spread.push_back(measured_value * half_range(size) / size.seconds);
  }
  Series ideal{.label = "ideal", .dashed = true};
  for (const double ranks : sizes_between(smallest, extrapolated_factor * largest)) {
    ideal.x.push_back(ranks);
    ideal.y.push_back(value(study,
                            study.sizes.front().seconds * (study.plan.growth == Growth::strong ? smallest / ranks : 1),
                            static_cast<int>(std::lround(ranks))));
  }
  panel.x_label = "ranks";
  panel.x_scale = Scale::logarithmic;
  panel.series = {measured, modelled(study, "model", smallest, largest, false, value),
                  modelled(study, "extrapolated", largest, extrapolated_factor * largest, true, value), ideal};
  return panel;
}

Panel energy_panel(const Study& study) {
  Series measured{.label = "measured", .has_dots = true};
  for (const auto& size : study.sizes) {
    measured.x.push_back(size.ranks);
    measured.y.push_back(size.joules);
  }
  return {.title = study.plan.growth == Growth::strong ? "Energy to solution" : "Energy of an update",
          .x_label = "ranks",
          .y_label = "J",
          .x_scale = Scale::logarithmic,
          .from_zero = true,
          .series = {measured}};
}

}  // namespace

Study study_of(const ScalePlan& plan, const std::vector<ScalePoint>& points, const Network& network) {
  check_set(plan, points);
  const auto& first = points.front().measure;
  Study study{.plan = plan, .sizes = sizes_of(plan, points)};
  study.device = first.device;
  study.identity = first.identity;
  study.peak_flops = plan.peak_flops ? plan.peak_flops : observe::peak_flops(first.device);
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

std::optional<double> use_of_peak(const Study& study, const ScaleSize& size) {
  if (!study.peak_flops || size.flops <= 0) return {};
  return size.flops * size.updates / (size.seconds * *study.peak_flops);
}

std::vector<std::vector<std::string>> scale_rows(const Study& study) {
  std::vector<Cells> all = {heading(study)};
  for (std::size_t i = 0; i < study.sizes.size(); ++i) all.push_back(row(study, i));
  return all;
}

std::vector<std::string> scale_notes(const Study& study) {
  std::vector<std::string> notes = {model_note(study)};
  if (has_use(study)) notes.push_back(mfu_note(study));
  return notes;
}

std::string scale_table(const Study& study) {
  const auto all = scale_rows(study);
  std::vector<int> widths(all.front().size(), 0);
  for (const auto& cells : all) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], core::width_of(cells[i]));
  }
  std::string table;
  for (const auto& cells : all) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      line += cells[i];
      if (i + 1 < cells.size())
        line += std::string(2, ' ').append(static_cast<std::size_t>(widths[i] - core::width_of(cells[i])), ' ');
    }
    table += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return table;
}

std::vector<Panel> scale_panels(const Study& study) {
  std::vector<Panel> panels = {
      panel_of(study, speed_up,
               {.title = text::concat("Speed-up, ", to_string(study.plan.growth), " scaling"),
                .y_label = "times the smallest run",
                .y_scale = Scale::logarithmic}),
      panel_of(study, efficiency, {.title = "Efficiency", .y_label = "share of the ideal", .from_zero = true})};
  if (has_energy(study)) panels.push_back(energy_panel(study));
  return panels;
}

std::string scale_markdown(const Study& study, const std::string& chart) {
  std::string page =
      text::concat("# Scaling of `", text::join(study.plan.command, " "), "`\n\n",
                   study.plan.growth == Growth::strong
                       ? "Strong scaling: the same total work on more ranks; times are of all updates.\n\n"
                       : "Weak scaling: the same work for each rank; times are of one update.\n\n");
  for (const auto& cells : scale_rows(study)) {
    page += "| " + text::join(cells, " | ") + " |\n";
    if (cells == heading(study)) page += "|" + text::join(Cells(cells.size(), "---"), "|") + "|\n";
  }
  page += text::concat("\nTimes are medians of ", text::count(study.plan.repeats, "run"),
                       ", spreads half of the range. Speed-up is relative to ",
                       text::count(study.sizes.front().ranks, "rank"), ".\n\n![](", chart, ")\n\n## The model\n\n",
                       model_note(study), '\n');
  if (has_use(study)) page += text::concat("\n## MFU\n\n", mfu_note(study), '\n');
  return page;
}

}  // namespace hortator::tools
