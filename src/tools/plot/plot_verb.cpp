#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "tools/charts/chart.hpp"
#include "tools/plot/pipeline_times.hpp"
#include "tools/scale/study_folder.hpp"
#include "tools/verbs.hpp"
#include "tools/watch/run_folder.hpp"
#include "tools/written_file.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

constexpr std::size_t max_points = 600;

Options plot_options() {
  Options options;
  options.named.add_options()("output,o", po::value<std::string>()->value_name("FILE"),
                              "file to write: FILE.svg, or FILE.png or FILE.pdf (drawn by Cairo)")(
      "metric", po::value<std::string>()->default_value("loss")->value_name("NAME"), "logged number to plot")(
      "log-scale", "use a logarithmic axis for the metric")("help,h", "print this help");
  return options;
}

int print_plot_help() {
  std::cout
      << "usage: hortator plot RUN... -o FILE.svg|FILE.png|FILE.pdf [options]\n\n"
         "Plots a metric and the step rate of one or more runs, with a vertical line at each restart. For a study of\n"
         "hortator scale it plots speed-up and efficiency; for a file of pipeline times (PipelineStepOptions::times),\n"
         "the plan and what was measured. SVG is built in; PNG and PDF need a build with Cairo.\n\n"
         "  hortator plot runs/digits -o digits.svg\n"
         "  hortator plot runs/small runs/large --metric accuracy -o compared.png\n"
         "  hortator plot times.jsonl -o times.svg\n\n"
         "exit code: 0 done; 2 wrong usage; 1 the file could not be written\n\n"
      << plot_options().named;
  return 0;
}

std::vector<std::string> names_in(const std::vector<MetricRow>& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) {
    for (const auto& [name, value] : row.values) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

Curve curve_of(const std::vector<MetricRow>& rows, const std::string& metric) {
  Curve curve;
  for (const auto& row : rows) {
    if (const auto value = row.find(metric)) {
      curve.x.push_back(static_cast<double>(row.step));
      curve.y.push_back(*value);
    }
  }
  return thinned(curve, max_points);
}

std::vector<double> restarts_of(const fs::path& run) {
  std::vector<double> steps;
  for (const auto& session : read_sessions(run)) {
    if (session.resumed_after) steps.push_back(static_cast<double>(*session.resumed_after));
  }
  return steps;
}

/// The run folders; the folder of an array stands for its tasks.
std::vector<std::string> runs_of(const std::vector<std::string>& given) {
  std::vector<std::string> runs;
  for (const auto& folder : given) {
    for (const auto& run : runs_in(folder)) runs.push_back(run.string());
  }
  return runs;
}

/// The folders' own names if they differ, otherwise the paths as given.
std::vector<std::string> labels_of(const std::vector<std::string>& runs) {
  std::vector<std::string> labels;
  for (const auto& run : runs) {
    auto name = fs::path(run).lexically_normal();
    if (name.filename().empty()) name = name.parent_path();
    labels.push_back(name.filename().string());
  }
  auto sorted = labels;
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) == sorted.end() ? labels : runs;
}

std::vector<Panel> panels_of(const std::vector<std::string>& runs, const std::string& metric, bool log_scale) {
  Panel values{
      .title = metric, .x_label = "step", .y_label = metric, .y_scale = log_scale ? Scale::logarithmic : Scale::linear};
  Panel rates{.title = "rate", .x_label = "step", .y_label = "steps / s", .from_zero = true};
  const auto labels = labels_of(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto rows = read_metrics(runs[i]);
    if (rows.empty()) {
      throw UsageError({.what = "The run " + text::quote(runs[i]) + " has no logged rows that plot can read",
                        .hint = "add \"jsonl\" to log_with and call accelerator.log()"});
    }
    const auto curve = curve_of(rows, metric);
    if (curve.x.empty()) {
      throw UsageError(
          {.what = text::concat("--metric: the run ", text::quote(runs[i]), " has no ", text::quote(metric)),
           .hint = text::suggestion(metric, names_in(rows))});
    }
    const auto marks = restarts_of(runs[i]);
    const auto rate = rate_of(rows, max_points / 3);
    values.series.push_back({.label = labels[i], .x = curve.x, .y = curve.y, .marks = marks});
    rates.series.push_back({.label = labels[i], .x = rate.x, .y = rate.y, .marks = marks});
  }
  return {values, rates};
}

}  // namespace

int plot_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(plot_options(), "run"));
  if (values.contains("help")) return print_plot_help();
  if (!values.contains("run")) {
    throw UsageError(
        {.what = "Expected the folder of at least one run", .hint = "hortator plot runs/digits -o digits.svg"});
  }
  if (!values.contains("output")) {
    throw UsageError({.what = "--output is missing", .hint = "use -o FILE.svg"});
  }
  const auto& given = values["run"].as<std::vector<std::string>>();
  const auto& name = values["output"].as<std::string>();
  auto panels = study_panels(given).value_or(std::vector<Panel>());
  if (given.size() == 1 && fs::is_regular_file(given.front())) panels = panels_of_times(given.front());
  const auto chart = chart_file(
      panels.empty() ? panels_of(runs_of(given), values["metric"].as<std::string>(), values.contains("log-scale"))
                     : panels,
      name);
  write_file(name, chart);
  return 0;
}

}  // namespace hortator::tools
