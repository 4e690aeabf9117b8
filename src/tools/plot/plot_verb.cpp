#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "tools/plot/chart.hpp"
#include "tools/scale/study_folder.hpp"
#include "tools/verbs.hpp"
#include "tools/watch/run_folder.hpp"
#include "tools/written_file.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

constexpr std::size_t max_points = 600;

Options known_options() {
  Options options;
  options.named.add_options()("output,o", po::value<std::string>()->value_name("FILE"),
                              "where to: FILE.svg or FILE.png")(
      "metric", po::value<std::string>()->default_value("loss")->value_name("NAME"), "which number of those logged")(
      "log-scale", "the metric on a logarithmic axis")("help,h", "this text");
  return options;
}

int print_help() {
  std::cout << "usage: hortator plot RUN... -o FILE.svg|FILE.png [options]\n\n"
               "Draws a metric and the rate of one run or several, with a line where a run was started again. A study "
               "of hortator\n"
               "scale is drawn as its speed-up and efficiency.\n\n"
               "  hortator plot runs/digits -o digits.svg\n"
               "  hortator plot runs/small runs/large --metric accuracy -o compared.png\n\n"
               "exit code: 0 done; 2 wrong usage; 1 the file could not be written\n\n"
            << known_options().named;
  return 0;
}

std::vector<std::string> names_in(const std::vector<tools::MetricRow>& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) {
    for (const auto& [name, value] : row.values) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

tools::Curve curve_of(const std::vector<tools::MetricRow>& rows, const std::string& metric) {
  tools::Curve curve;
  for (const auto& row : rows) {
    if (const auto value = row.find(metric)) {
      curve.x.push_back(static_cast<double>(row.step));
      curve.y.push_back(*value);
    }
  }
  return tools::thinned(curve, max_points);
}

std::vector<double> restarts_of(const fs::path& run) {
  std::vector<double> places;
  for (const auto& session : read_sessions(run)) {
    if (session.resumed_after) places.push_back(static_cast<double>(*session.resumed_after));
  }
  return places;
}

/// As short as tells the runs apart: their folders' own names, or else as they were given.
std::vector<std::string> labels_of(const std::vector<std::string>& runs) {
  std::vector<std::string> labels;
  for (const auto& run : runs) {
    auto name = fs::path(run).lexically_normal();
    if (name.filename().empty()) name = name.parent_path();
    labels.push_back(name.filename().string());
  }
  auto sorted = labels;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() ? labels : runs;
}

std::vector<tools::Panel> panels_of(const std::vector<std::string>& runs, const std::string& metric, bool log_scale) {
  tools::Panel values{.title = metric,
                      .x_label = "step",
                      .y_label = metric,
                      .y_scale = log_scale ? tools::Scale::logarithmic : tools::Scale::linear};
  tools::Panel rates{.title = "rate", .x_label = "step", .y_label = "steps / s", .from_zero = true};
  const auto labels = labels_of(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    check_run_folder(runs[i]);
    const auto rows = read_metrics(runs[i]);
    if (rows.empty()) {
      throw UsageError({.what = "the run " + text::quote(runs[i]) + " has logged nothing that plot can read",
                        .hint = "call accelerator.log() with \"jsonl\" among log_with"});
    }
    const auto curve = curve_of(rows, metric);
    if (curve.x.empty()) {
      throw UsageError({.what = text::concat("the run ", text::quote(runs[i]), " has no ", text::quote(metric)),
                        .hint = text::suggestion(metric, names_in(rows))});
    }
    const auto marks = restarts_of(runs[i]);
    const auto rate = tools::rate_of(rows, max_points / 3);
    values.series.push_back({.label = labels[i], .x = curve.x, .y = curve.y, .marks = marks});
    rates.series.push_back({.label = labels[i], .x = rate.x, .y = rate.y, .marks = marks});
  }
  return {values, rates};
}

}  // namespace

int plot_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(known_options(), "run"));
  if (values.contains("help")) return print_help();
  if (!values.contains("run")) {
    throw UsageError({.what = "plot needs a run", .hint = "name folders: hortator plot runs/digits -o digits.svg"});
  }
  if (!values.contains("output")) {
    throw UsageError({.what = "plot needs a file to draw into", .hint = "say -o FILE.svg or -o FILE.png"});
  }
  const auto& runs = values["run"].as<std::vector<std::string>>();
  const auto& name = values["output"].as<std::string>();
  const auto panels = study_panels(runs).value_or(std::vector<tools::Panel>());
  const auto picture = tools::chart_file(
      panels.empty() ? panels_of(runs, values["metric"].as<std::string>(), values.contains("log-scale")) : panels,
      name);
  write_file(name, picture);
  return 0;
}

}  // namespace hortator::tools
