#include "tools/scale/scale_plan.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>

#include "core/text/foreign_text.hpp"
#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

using Json = nlohmann::ordered_json;

template <typename Read>
auto read_json(const std::string& text, const char* what, const Read& read) {
  try {
    if (core::is_shallow(text)) return read(Json::parse(text));
    throw Error({.what = text::concat("this is no ", what, " of hortator scale: it is too deep")});
  } catch (const Json::exception& error) {
    throw Error({.what = text::concat("this is no ", what, " of hortator scale: ", error.what()),
                 .hint = "make the study anew"});
  }
}

bool is_same(const ScaleRun& a, const ScaleRun& b) { return a.ranks == b.ranks && a.repeat == b.repeat; }

std::string name(const ScaleRun& run) {
  return text::concat(text::count(run.ranks, "rank"), ", repeat ", run.repeat + 1);
}

std::string device_of(const ScalePoint& point) { return point.measure.device.empty() ? "none" : point.measure.device; }

[[noreturn]] void refuse_difference(const ScalePoint& a, const ScalePoint& b, const char* what, const std::string& of_a,
                                    const std::string& of_b) {
  throw Error({.what = text::concat("the points differ in ", what, ": ", name(a.run), " has ", of_a, ", ", name(b.run),
                                    " has ", of_b),
               .why = "such times cannot be compared",
               .hint = "make the study anew, in another folder"});
}

}  // namespace

std::string_view to_string(Growth growth) { return growth == Growth::strong ? "strong" : "weak"; }

std::vector<int> parse_counts(std::string_view words, std::string_view option) {
  std::vector<int> counts;
  for (const auto& word : text::split(std::string(words), ',')) {
    long long number = 0;
    const bool is_count = text::parse_integer(word, number) && number >= 1 && number <= 1'000'000;
    if (!is_count || (!counts.empty() && number <= counts.back())) {
      throw UsageError({.what = text::concat(option, " ", words, " is no list of sizes"),
                        .hint = "write ascending numbers, as 1,2,4,8"});
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
  const auto place =
      static_cast<std::size_t>(std::find(plan.ranks.begin(), plan.ranks.end(), ranks) - plan.ranks.begin());
  return place < plan.nodes.size() ? plan.nodes[place] : 0;
}

std::string file_name(const ScaleRun& run) { return text::concat("point_", run.ranks, '_', run.repeat + 1, ".json"); }

std::string to_json(const ScalePlan& plan) {
  Json json = {{"growth", to_string(plan.growth)},
               {"nodes", plan.nodes},
               {"ranks", plan.ranks},
               {"repeats", plan.repeats},
               {"program", plan.program},
               {"words", plan.words},
               {"cores_per_node", plan.cores_per_node}};
  if (plan.peak_flops) json["peak_flops"] = *plan.peak_flops;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

ScalePlan parse_plan(const std::string& text) {
  return read_json(text, "plan", [](const Json& json) {
    ScalePlan plan{.growth = json.at("growth") == "weak" ? Growth::weak : Growth::strong,
                   .nodes = json.at("nodes").get<std::vector<int>>(),
                   .ranks = json.at("ranks").get<std::vector<int>>(),
                   .repeats = json.at("repeats"),
                   .program = json.at("program"),
                   .words = json.at("words").get<std::vector<std::string>>(),
                   .cores_per_node = json.at("cores_per_node")};
    if (json.contains("peak_flops")) plan.peak_flops = json.at("peak_flops").get<double>();
    return plan;
  });
}

std::string to_json(const ScalePoint& point) {
  const Json json = {{"ranks", point.run.ranks},
                     {"nodes", point.run.nodes},
                     {"repeat", point.run.repeat},
                     {"program", point.program},
                     {"measure", Json::parse(to_json(point.measure))}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

ScalePoint parse_point(const std::string& text) {
  return read_json(text, "point", [](const Json& json) {
    const auto measure = observe::parse_measure(json.at("measure").dump());
    if (!measure) throw Error({.what = "a point holds no measurement", .hint = "make the study anew"});
    return ScalePoint{.run = {.ranks = json.at("ranks"), .nodes = json.at("nodes"), .repeat = json.at("repeat")},
                      .measure = *measure,
                      .program = json.at("program")};
  });
}

void check_set(const ScalePlan& plan, const std::vector<ScalePoint>& points) {
  std::vector<std::string> missing;
  for (const auto& run : runs_of(plan)) {
    const bool is_there =
        std::any_of(points.begin(), points.end(), [&](const ScalePoint& point) { return is_same(point.run, run); });
    if (!is_there) missing.push_back(name(run));
  }
  if (!missing.empty()) {
    throw Error({.what = "the study is not complete: missing are " + text::join(missing, "; "),
                 .why = "a curve with holes misleads",
                 .hint = "wait for the jobs, or make those runs again"});
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
                   .hint = "look into its log"});
    }
    if (point.measure.updates < 2) {
      throw Error({.what = text::concat(name(point.run), " made ", text::count(point.measure.updates, "update")),
                   .why = "its time says nothing",
                   .hint = "let it train for some steps"});
    }
  }
}

}  // namespace hortator::tools
