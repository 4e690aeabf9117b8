#include <cmath>
#include <hortator/error.hpp>

#include "observe/status/measure.hpp"
#include "support/catch.hpp"
#include "tools/scale/scale_report.hpp"

using namespace hortator;
using namespace hortator::tools;

namespace {

constexpr Network network{.ranks = 4, .latency = 1e-4, .seconds_per_byte = 1e-9};
constexpr double megabytes = 40e6;

/// What a machine would take that is as the model has it: `shown` of the communication is not hidden.
double truth(Growth growth, int ranks, double shown) {
  const double compute = growth == Growth::strong ? 0.8 / ranks : 0.8;
  if (ranks == 1) return compute;
  const double all_reduce =
      network.latency * std::log2(ranks) / 2 + network.seconds_per_byte * megabytes * ((ranks - 1.0) / ranks) / 0.75;
  return compute + shown * all_reduce;
}

ScalePlan plan_of(Growth growth, const std::vector<int>& ranks) {
  return {.growth = growth, .ranks = ranks, .repeats = 3, .program = "p", .command = {"./train"}, .cores_per_node = 64};
}

std::vector<ScalePoint> points_of(const ScalePlan& plan, double shown) {
  std::vector<ScalePoint> points;
  for (const auto& run : runs_of(plan)) {
    const double noise = 1 + 0.01 * (run.repeat - 1);
    points.push_back({.run = run,
                      .measure = {.identity = "v1",
                                  .ranks = run.ranks,
                                  .nodes = 1,
                                  .cpus = 2,
                                  .updates = 100,
                                  .seconds_per_update = noise * truth(plan.growth, run.ranks, shown),
                                  .seconds = 36,
                                  .gradient_bytes = static_cast<std::int64_t>(megabytes)},
                      .program = "p"});
  }
  return points;
}

}  // namespace

TEST_CASE("parse_counts accepts ascending numbers only") {
  CHECK(parse_counts("1,2,4", "--ranks") == std::vector<int>{1, 2, 4});
  CHECK(parse_counts("3", "--ranks") == std::vector<int>{3});
  for (const char* list : {"", "1,", "2,1", "1,1", "0,1", "a", "1 2", "-1", "99999999"})
    CHECK_THROWS_WITH(parse_counts(list, "--ranks"), ContainsSubstring("--ranks: expected ascending whole numbers"));
}

TEST_CASE("repeats of a size are spread over the study") {
  const auto runs = runs_of(plan_of(Growth::weak, {1, 2}));
  REQUIRE(runs.size() == 6);
  CHECK(runs[0].ranks == 1);
  CHECK(runs[1].ranks == 2);
  CHECK(runs[2].repeat == 1);
  CHECK(file_name(runs[5]) == "point_2_3.json");
  auto plan = plan_of(Growth::weak, {4, 8});
  plan.nodes = {1, 2};
  CHECK(runs_of(plan)[1].nodes == 2);
}

TEST_CASE("plans and points survive a round trip through JSON") {
  auto plan = plan_of(Growth::weak, {4, 8});
  plan.nodes = {1, 2};
  plan.command = {"./train", "--name", "a b"};
  CHECK(parse_plan(to_json(plan)).launch.empty());
  plan.launch = {"--mixed-precision=bf16", "--cpu"};
  CHECK(parse_plan(to_json(plan)).launch == plan.launch);
  CHECK(to_json(parse_plan(to_json(plan))) == to_json(plan));
  const auto point = points_of(plan, 1).back();
  CHECK(to_json(parse_point(to_json(point))) == to_json(point));
  CHECK_THROWS_WITH(parse_plan("{}"), ContainsSubstring("Not a valid plan"));
  CHECK_THROWS_WITH(parse_point("rubbish"), ContainsSubstring("Not a valid point"));
}

TEST_CASE("check_set refuses incomplete and mixed sets") {
  const auto plan = plan_of(Growth::strong, {1, 2});
  auto points = points_of(plan, 1);
  CHECK_NOTHROW(check_set(plan, points));
  const auto changed = [&](auto&& change) {
    auto other = points;
    change(other);
    return other;
  };
  CHECK_THROWS_WITH(check_set(plan, changed([](auto& all) { all.pop_back(); })),
                    ContainsSubstring("missing runs: 2 ranks, repeat 3"));
  CHECK_THROWS_WITH(check_set(plan, {}), ContainsSubstring("incomplete"));
  CHECK_THROWS_WITH(check_set(plan, changed([](auto& all) { all[3].measure.identity = "v2"; })),
                    ContainsSubstring("differ in versions"));
  CHECK_THROWS_WITH(check_set(plan, changed([](auto& all) { all[1].program = "q"; })),
                    ContainsSubstring("differ in the program"));
  CHECK_THROWS_WITH(check_set(plan, changed([](auto& all) { all[1].measure.ranks = 3; })),
                    ContainsSubstring("ran on 3 ranks"));
  CHECK_THROWS_WITH(check_set(plan, changed([](auto& all) { all[1].measure.updates = 0; })),
                    ContainsSubstring("made 0 updates"));
}

TEST_CASE("network_of fits latency and bandwidth") {
  const auto line = network_of(2, {{1e3, 1e-4 + 1e-6}, {1e6, 1e-4 + 1e-3}, {1e7, 1e-4 + 1e-2}});
  CHECK(line.latency == Approx(1e-4).epsilon(0.01));
  CHECK(line.seconds_per_byte == Approx(1e-9).epsilon(0.01));
  CHECK_THROWS_WITH(network_of(2, {{1e3, 1}}), ContainsSubstring("two sizes"));
  CHECK_THROWS_AS(network_of(2, {}), Error);
  CHECK(network_of(2, {{1e3, 1}, {1e6, 0.5}}).seconds_per_byte == 0);
}

TEST_CASE("the model recovers the overlap and predicts sizes that it was not fitted to") {
  for (const auto growth : {Growth::strong, Growth::weak}) {
    for (const double shown : {0.0, 0.3, 1.0}) {
      const auto plan = plan_of(growth, {1, 2, 4, 8});
      const auto study = study_of(plan, points_of(plan, shown), network);
      const ScaleModel model(study.setting, study.sizes);
      INFO(to_string(growth) << " " << shown);
      CHECK(model.overlap() == Approx(1 - shown).margin(0.01));
      const double updates = growth == Growth::strong ? 100 : 1;
      for (const int ranks : {1, 2, 8, 16, 32})
        CHECK(model.seconds(ranks) == Approx(updates * truth(growth, ranks, shown)).epsilon(0.01));
      CHECK_FALSE(left_out(study.setting, study.sizes, 0).has_value());
      CHECK(left_out(study.setting, study.sizes, 3).value() == Approx(study.sizes[3].seconds).epsilon(0.02));
    }
  }
}

TEST_CASE("a study may start with more than one rank") {
  const auto plan = plan_of(Growth::weak, {2, 4, 8});
  const auto study = study_of(plan, points_of(plan, 0.5), network);
  const ScaleModel model(study.setting, study.sizes);
  CHECK(model.overlap() == Approx(0.5).margin(0.02));
  CHECK(model.seconds(16) == Approx(truth(Growth::weak, 16, 0.5)).epsilon(0.01));
}

TEST_CASE("ranks that share cores slow each other down") {
  const std::vector<ScaleSize> sizes = {
      {.ranks = 1, .seconds = 1}, {.ranks = 2, .seconds = 1}, {.ranks = 4, .seconds = 2}};
  const ScaleModel busy({.growth = Growth::weak, .network = network, .cores_per_node = 2}, sizes);
  CHECK(busy.seconds(4) == Approx(2).epsilon(0.001));
  CHECK(busy.seconds(2) == Approx(1).epsilon(0.001));
  const ScaleModel sleeping({.growth = Growth::weak, .network = network, .cores_per_node = 2, .cores_per_rank = 0.1},
                            sizes);
  CHECK(sleeping.seconds(4) == Approx(1).epsilon(0.001));
  const ScaleModel spread({.growth = Growth::weak, .network = network, .cores_per_node = 2, .ranks_per_node = 2},
                          sizes);
  CHECK(spread.seconds(4) == Approx(1).epsilon(0.001));
}

TEST_CASE("a job of fixed work makes fewer updates on more ranks") {
  const std::vector<ScaleSize> sizes = {{.ranks = 1, .seconds = 80, .updates = 100},
                                        {.ranks = 2, .seconds = 40, .updates = 50}};
  const ScaleModel model({.growth = Growth::strong, .network = network, .cores_per_node = 8}, sizes);
  CHECK(model.seconds(4) == Approx(20).epsilon(0.001));
}

TEST_CASE("speed-up and efficiency compare with the smallest run") {
  const auto strong_plan = plan_of(Growth::strong, {2, 4});
  const auto strong = study_of(strong_plan, points_of(strong_plan, 0), network);
  CHECK(speed_up(strong, strong.sizes[0].seconds, 2) == 1);
  CHECK(speed_up(strong, strong.sizes[0].seconds / 2, 4) == 2);
  CHECK(efficiency(strong, strong.sizes[0].seconds, 4) == 0.5);
  const auto weak_plan = plan_of(Growth::weak, {2, 4});
  const auto weak = study_of(weak_plan, points_of(weak_plan, 0), network);
  CHECK(efficiency(weak, weak.sizes[0].seconds, 4) == 1);
  CHECK(speed_up(weak, 2 * weak.sizes[0].seconds, 4) == 1);
}

TEST_CASE("the report has every size, the prediction and its limit") {
  const auto plan = plan_of(Growth::strong, {1, 2, 4});
  const auto study = study_of(plan, points_of(plan, 0.5), network);
  const auto table = scale_table(study);
  CHECK_THAT(table,
             ContainsSubstring("speed-up") && ContainsSubstring("efficiency") && ContainsSubstring("core hours"));
  CHECK(std::count(table.begin(), table.end(), '\n') == 4);
  CHECK_THAT(table, ContainsSubstring("0.06"));  // 3 runs of 36 s on one rank with two cores
  const auto page = scale_markdown(study, "scaling.svg");
  CHECK(table.find("GPU hours") == std::string::npos);
  CHECK(table.find("MFU") == std::string::npos);
  CHECK_THAT(page, ContainsSubstring("# Scaling of `./train`") && ContainsSubstring("![](scaling.svg)") &&
                       ContainsSubstring("Beyond 4 ranks") && ContainsSubstring("|---|"));
  const auto panels = scale_panels(study);
  REQUIRE(panels.size() == 2);
  const auto& series = panels[0].series;
  REQUIRE(series.size() == 4);
  CHECK(series[0].x == std::vector<double>{1, 2, 4});
  CHECK(series[1].label == "model");
  CHECK_FALSE(series[1].dashed);
  CHECK(series[1].x.back() == 4);  // the largest size that was measured
  CHECK(series[2].label == "extrapolated");
  CHECK(series[2].dashed);
  CHECK(series[2].x.front() == 4);
  CHECK(series[2].y.front() == series[1].y.back());
  CHECK(series[2].x.back() == 64);
  CHECK(series[3].y.back() == Approx(64));
  CHECK(chart_file(panels, "a.svg").size() > 2000);
}

TEST_CASE("GPU hours are reported on GPUs, and MFU if operations and the peak are known") {
  const auto plan = plan_of(Growth::weak, {1, 2, 4});
  auto points = points_of(plan, 0);
  for (auto& point : points) {
    point.measure.device = "NVIDIA A100-SXM4-80GB";
    point.measure.flops_per_update = 0.8 * 156e12;
  }
  const auto study = study_of(plan, points, network);
  CHECK(study.peak_flops == 312e12);
  CHECK(study.sizes[2].gpu_hours == Approx(3 * 36 * 4 / 3600.0));
  CHECK(use_of_peak(study, study.sizes[0]).value() == Approx(0.5));
  const auto table = scale_table(study);
  CHECK_THAT(table, ContainsSubstring("GPU hours") && ContainsSubstring("MFU"));
  CHECK_THAT(scale_markdown(study, "scaling.svg"),
             ContainsSubstring("| 0.12 | 50 % |") && ContainsSubstring("124.8 TFLOP,") &&
                 ContainsSubstring("312 TFLOP/s in 16 bits") && ContainsSubstring("NVIDIA A100-SXM4-80GB"));

  auto with_peak = plan;
  with_peak.peak_flops = 624e12;
  CHECK(use_of_peak(study_of(with_peak, points, network), study.sizes[0]).value() == Approx(0.25));
  CHECK(parse_plan(to_json(with_peak)).peak_flops == 624e12);
  for (auto& point : points) point.measure.device = "";
  CHECK_FALSE(use_of_peak(study_of(plan, points, network), study.sizes[0]).has_value());
  points.back().measure.device = "NVIDIA H200";
  CHECK_THROWS_WITH(study_of(plan, points, network), ContainsSubstring("differ in devices"));
}

TEST_CASE("strong scaling keeps MFU when the work is divided evenly") {
  const auto plan = plan_of(Growth::strong, {1, 2});
  auto points = points_of(plan, 0);
  for (auto& point : points) {
    point.measure.device = "NVIDIA H100 80GB HBM3";
    point.measure.flops_per_update = 0.8 * 98.9e12 / point.run.ranks;
  }
  const auto study = study_of(plan, points, network);
  for (const auto& size : study.sizes) CHECK(use_of_peak(study, size).value() == Approx(0.1).epsilon(0.01));
}

TEST_CASE("peak_flops prefers the longer matching device name") {
  CHECK(observe::peak_flops("NVIDIA H200 NVL") == 835e12);
  CHECK(observe::peak_flops("NVIDIA H200") == 989e12);
  CHECK_FALSE(observe::peak_flops("NVIDIA GeForce RTX 4090").has_value());
  CHECK_FALSE(observe::peak_flops("").has_value());
}

TEST_CASE("energy to solution is reported where all runs have measured it") {
  const auto plan = plan_of(Growth::strong, {1, 2, 4});
  auto points = points_of(plan, 0);
  CHECK_THAT(scale_table(study_of(plan, points, network)), !ContainsSubstring("energy"));
  CHECK(scale_panels(study_of(plan, points, network)).size() == 2);
  for (auto& point : points) point.measure.joules = 1000.0 * point.run.ranks * (1 + 0.1 * (point.run.repeat - 1));
  const auto study = study_of(plan, points, network);
  CHECK(study.sizes[1].joules == Approx(2000));
  const auto table = scale_table(study);
  CHECK_THAT(table, ContainsSubstring("energy"));
  CHECK_THAT(table, ContainsSubstring("4 kJ"));
  const auto panels = scale_panels(study);
  REQUIRE(panels.size() == 3);
  CHECK(panels[2].title == "Energy to solution");
  CHECK(panels[2].series[0].y ==
        std::vector<double>{study.sizes[0].joules, study.sizes[1].joules, study.sizes[2].joules});
  CHECK(observe::parse_measure(observe::to_json(points[0].measure))->joules == points[0].measure.joules);
}
