#include "tools/scale/scale_plan.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>

#include "core/text/json.hpp"
#include "core/text/text.hpp"

namespace hortator::tools {

// An unknown name is read as the first one.
NLOHMANN_JSON_SERIALIZE_ENUM(Growth, {{Growth::strong, "strong"}, {Growth::weak, "weak"}})

namespace {

using Json = nlohmann::ordered_json;

constexpr auto restart_hint = "start the study again in another folder";

// The fields of a stored plan, in their order in the file: calls visit(key, member) for each.
template <typename Plan, typename Visit>
void plan_fields(Plan& plan, const Visit& visit) {
  visit("growth", plan.growth);
  visit("nodes", plan.nodes);
  visit("ranks", plan.ranks);
  visit("repeats", plan.repeats);
  visit("program", plan.program);
  visit("words", plan.command);
  visit("cores_per_node", plan.cores_per_node);
}

// The same for a point.
template <typename Point, typename Visit>
void point_fields(Point& point, const Visit& visit) {
  visit("ranks", point.run.ranks);
  visit("nodes", point.run.nodes);
  visit("repeat", point.run.repeat);
  visit("program", point.program);
}

std::string file_text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

template <typename Read>
auto read_json(const std::string& text, const char* what, const Read& read) {
  try {
    if (core::is_shallow(text)) return read(Json::parse(text));
    throw Error({.what = text::concat("Not a valid ", what, " of hortator scale: it is nested too deeply")});
  } catch (const Json::exception& error) {
    throw Error(
        {.what = text::concat("Not a valid ", what, " of hortator scale: ", error.what()), .hint = restart_hint});
  }
}

bool is_same(const ScaleRun& a, const ScaleRun& b) { return a.ranks == b.ranks && a.repeat == b.repeat; }

std::string name(const ScaleRun& run) {
  return text::concat(text::count(run.ranks, "rank"), ", repeat ", run.repeat + 1);
}

std::string device_of(const ScalePoint& point) { return point.measure.device.empty() ? "none" : point.measure.device; }

[[noreturn]] void refuse_difference(const ScalePoint& a, const ScalePoint& b, const char* what, const std::string& of_a,
                                    const std::string& of_b) {
  throw Error({.what = text::concat("The points differ in ", what, ": ", name(a.run), " has ", of_a, ", ", name(b.run),
                                    " has ", of_b),
               .why = "their times cannot be compared",
               .hint = restart_hint});
}

}  // namespace

std::string_view to_string(Growth growth) { return growth == Growth::strong ? "strong" : "weak"; }

std::vector<int> parse_counts(std::string_view list, std::string_view option) {
  std::vector<int> counts;
  for (const auto& item : text::split(std::string(list), ',')) {
    long long number = 0;
    const bool is_count = text::parse_integer(item, number) && number >= 1 && number <= 1'000'000;
    if (!is_count || (!counts.empty() && number <= counts.back())) {
      throw UsageError({.what = text::concat(option, ": expected ascending whole numbers from 1, got ",
                                             text::quote(std::string(list))),
                        .hint = "separate them by commas, such as 1,2,4,8"});
    }
    counts.push_back(static_cast<int>(number));
  }
  return counts;
}

std::vector<ScaleRun> runs_of(const ScalePlan& plan) {
  std::vector<ScaleRun> runs;
  for (int repeat = 0; repeat < plan.repeats; ++repeat) {
    for (const int ranks : plan.ranks)
      runs.push_back({.ranks = ranks, .nodes = nodes_of(plan, ranks), .repeat = repeat});
  }
  return runs;
}

int nodes_of(const ScalePlan& plan, int ranks) {
  const auto index = static_cast<std::size_t>(std::ranges::find(plan.ranks, ranks) - plan.ranks.begin());
  return index < plan.nodes.size() ? plan.nodes[index] : 0;
}

std::string file_name(const ScaleRun& run) { return text::concat("point_", run.ranks, '_', run.repeat + 1, ".json"); }

std::string to_json(const ScalePlan& plan) {
  Json json;
  plan_fields(plan, [&](const char* key, const auto& value) { json[key] = value; });
  if (plan.peak_flops) json["peak_flops"] = *plan.peak_flops;
  if (!plan.launch.empty()) json["launch"] = plan.launch;
  return file_text(json);
}

ScalePlan parse_plan(const std::string& text) {
  return read_json(text, "plan", [](const Json& json) {
    ScalePlan plan;
    plan_fields(plan, [&](const char* key, auto& value) { json.at(key).get_to(value); });
    if (json.contains("peak_flops")) plan.peak_flops = json.at("peak_flops").get<double>();
    if (json.contains("launch")) json.at("launch").get_to(plan.launch);
    return plan;
  });
}

std::string to_json(const ScalePoint& point) {
  Json json;
  point_fields(point, [&](const char* key, const auto& value) { json[key] = value; });
  json["measure"] = Json::parse(to_json(point.measure));
  return file_text(json);
}

ScalePoint parse_point(const std::string& text) {
  return read_json(text, "point", [](const Json& json) {
    const auto measure = observe::parse_measure(json.at("measure").dump());
    if (!measure) throw Error({.what = "The point has no measurement", .hint = restart_hint});
    ScalePoint point{.measure = *measure};
    point_fields(point, [&](const char* key, auto& value) { json.at(key).get_to(value); });
    return point;
  });
}

void check_set(const ScalePlan& plan, const std::vector<ScalePoint>& points) {
  std::vector<std::string> missing;
  for (const auto& run : runs_of(plan)) {
    const bool is_present =
        std::ranges::any_of(points, [&](const ScalePoint& point) { return is_same(point.run, run); });
    if (!is_present) missing.push_back(name(run));
  }
  if (!missing.empty()) {
    throw Error({.what = "The study is incomplete; missing runs: " + text::join(missing, "; "),
                 .why = "a curve with gaps is misleading",
                 .hint = "wait for the jobs to end, or start those runs again: hortator scale run DIR RANKS"});
  }
  const auto& first = points.front();
  for (const auto& point : points) {
    if (point.measure.identity != first.measure.identity)
      refuse_difference(first, point, "versions", first.measure.identity, point.measure.identity);
    if (point.measure.device != first.measure.device)
      refuse_difference(first, point, "devices", device_of(first), device_of(point));
    if (point.program != first.program) refuse_difference(first, point, "the program", first.program, point.program);
    if (point.measure.ranks != point.run.ranks) {
      throw Error({.what = text::concat(name(point.run), " ran on ", text::count(point.measure.ranks, "rank")),
                   .hint = "read its log"});
    }
    if (point.measure.updates < 2) {
      throw Error({.what = text::concat(name(point.run), " made ", text::count(point.measure.updates, "update")),
                   .why = "at least 2 updates are needed to time one",
                   .hint = "let the program train for more steps"});
    }
  }
}

}  // namespace hortator::tools
