#include "tools/scale/study_folder.hpp"

#include <hortator/error.hpp>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "tools/charts/canvas.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

constexpr auto plan_file = "plan.json";
constexpr auto chart_name = "scaling.svg";

Network read_network(const fs::path& folder) {
  const auto json = core::parse_record(read_text(folder / collectives_file));
  return {.ranks = json.at("ranks"), .latency = json.at("latency"), .seconds_per_byte = json.at("seconds_per_byte")};
}

}  // namespace

std::string read_text(const fs::path& file) {
  auto content = core::read_at_most(file, core::max_record_bytes);
  if (content) return std::move(*content);
  throw Error({.what = text::quote(file.string()) + " cannot be read",
               .why = text::concat("it is missing, or larger than ", core::max_record_bytes, " bytes")});
}

void write_text(const fs::path& file, const std::string& content) {
  if (!core::write_whole(file, file.string() + ".new", content))
    throw Error({.what = text::quote(file.string()) + " cannot be written"});
}

void write_plan(const fs::path& folder, const ScalePlan& plan) { write_text(folder / plan_file, to_json(plan)); }

ScalePlan read_plan(const fs::path& folder) {
  if (!fs::exists(folder / plan_file)) {
    throw UsageError({.what = text::concat("No scaling study in ", text::quote(folder.string())),
                      .hint = "give the folder that --out of hortator scale named"});
  }
  return parse_plan(read_text(folder / plan_file));
}

void write_point(const fs::path& folder, const ScalePoint& point) {
  write_text(folder / file_name(point.run), to_json(point));
}

bool has_point(const fs::path& folder, const ScaleRun& run) { return fs::exists(folder / file_name(run)); }

std::vector<ScalePoint> read_points(const fs::path& folder, const ScalePlan& plan) {
  std::vector<ScalePoint> points;
  for (const auto& run : runs_of(plan)) {
    if (has_point(folder, run)) points.push_back(parse_point(read_text(folder / file_name(run))));
  }
  return points;
}

Study read_study(const fs::path& folder) {
  const auto plan = read_plan(folder);
  const auto points = read_points(folder, plan);
  check_set(plan, points);
  const bool is_one_rank = plan.ranks.back() == 1;
  return study_of(plan, points, is_one_rank ? Network{} : read_network(folder));
}

std::string write_report(const fs::path& folder) {
  const auto study = read_study(folder);
  const auto panels = scale_panels(study);
  write_text(folder / chart_name, chart_file(panels, chart_name));
  if (has_cairo()) write_text(folder / "scaling.png", chart_file(panels, "scaling.png"));
  write_text(folder / "report.md", scale_markdown(study, chart_name));
  return scale_table(study);
}

std::optional<std::vector<Panel>> study_panels(const std::vector<std::string>& runs) {
  if (runs.size() != 1 || !fs::exists(fs::path(runs.front()) / plan_file)) return {};
  return scale_panels(read_study(runs.front()));
}

Network network_in(int ranks, const std::string& lines) {
  std::vector<Timing> timings;
  for (const auto& line : text::split(lines, '\n')) {
    const auto json = core::parse_record(line);
    if (!json.is_object() || json.value("name", "") != "all_reduce" || !json.contains("params")) continue;
    // Gradients are in the back end's own memory ("window"). Bench prints one row for each reference; take one of them.
    if (json["params"].value("memory", "") != "window" || json.value("reference", "") != "memcpy") continue;
    timings.push_back({.bytes = json["params"].value("bytes", 0.0), .seconds = json.value("median_s", 0.0)});
  }
  return network_of(ranks, timings);
}

}  // namespace hortator::tools
