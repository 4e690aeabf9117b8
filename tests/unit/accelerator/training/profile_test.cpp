#include <torch/csrc/profiler/orchestration/observer.h>

#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

using Names = std::map<std::string, int>;

nlohmann::json events_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  REQUIRE(in.good());
  return nlohmann::json::parse(in).at("traceEvents");
}

Names names_in(const std::filesystem::path& file) {
  Names names;
  for (const auto& event : events_of(file)) {
    if (event.value("ph", "") == "X") ++names[event.value("name", "")];
  }
  return names;
}

std::filesystem::path file_of(const test::Folder& folder, const State& state, const std::string& cycle = "") {
  return folder.path() / ("profile_" + std::to_string(state.process_index()) + cycle + ".json");
}

}  // namespace

TEST_CASE("each rank writes a trace of a training step, with its collectives as ranges", "[pool]") {
  Accelerator accelerator;
  const test::Folder folder(accelerator, "profile");
  test::Net net;
  auto model = accelerator.prepare(net);
  model(at::ones({2, 3})).sum().backward();
  std::vector<std::filesystem::path> ready;
  {
    auto profile = accelerator.profile({.record_shapes = true,
                                        .output_trace_dir = folder.path(),
                                        .on_trace_ready = [&](const auto& file) { ready.push_back(file); }});
    accelerator.backward(model(at::ones({2, 3})).sum());
    CHECK_FALSE(std::filesystem::exists(file_of(folder, accelerator)));
  }
  for (int rank = 0; rank < accelerator.num_processes(); ++rank) {
    CHECK(std::filesystem::exists(folder.path() / ("profile_" + std::to_string(rank) + ".json")));
  }
  const auto file = file_of(folder, accelerator);
  CHECK(ready == std::vector{file});
  const auto names = names_in(file);
  CHECK(names.contains("aten::addmm"));
  bool has_shapes = false;
  for (const auto& event : events_of(file)) {
    has_shapes = has_shapes || (event.value("name", "") == "aten::addmm" && event["args"].contains("Input Dims"));
  }
  CHECK(has_shapes);
  const auto count_of = [&](const std::string& prefix) {
    int count = 0;
    for (const auto& [name, times] : names) count += name.starts_with(prefix) ? times : 0;
    return count;
  };
  const bool has_peers = accelerator.num_processes() > 1;
  // The gradients, and the comparison of the pass between ranks.
  CHECK(count_of("hortator::all_reduce (node, ") == (has_peers ? 2 : 0));
  CHECK(count_of("hortator::all_reduce wait (node, ") == (has_peers ? 2 : 0));
  CHECK(count_of("hortator::broadcast (node, ") == (has_peers ? 1 : 0));
  CHECK_FALSE(torch::profiler::impl::profilerEnabled());
}

TEST_CASE("a schedule records cycles of steps, one file per cycle", "[pool]") {
  Accelerator accelerator;
  const test::Folder folder(accelerator, "cycles");
  {
    auto profile = accelerator.profile(
        {.schedule_option = ProfileSchedule{.wait = 1, .warmup = 1, .active = 2, .repeat = 2, .skip_first = 1},
         .output_trace_dir = folder.path()});
    for (int step = 0; step < 12; ++step) {
      at::ones({3}).mul_(step);
      profile.step();
    }
  }
  const auto steps_in = [&](const std::string& cycle) {
    std::vector<std::string> steps;
    for (const auto& [name, times] : names_in(file_of(folder, accelerator, cycle))) {
      if (name.starts_with("ProfilerStep#")) steps.push_back(name);
    }
    return steps;
  };
  CHECK(steps_in("") == std::vector<std::string>{"ProfilerStep#3", "ProfilerStep#4"});
  CHECK(steps_in(".1") == std::vector<std::string>{"ProfilerStep#7", "ProfilerStep#8"});
  CHECK(names_in(file_of(folder, accelerator)).at("aten::mul_") == 2);
  CHECK_FALSE(std::filesystem::exists(file_of(folder, accelerator, ".2")));
}

TEST_CASE("a recording that the end of the scope cuts short is written", "[pool]") {
  Accelerator accelerator;
  const test::Folder folder(accelerator, "short");
  {
    auto profile =
        accelerator.profile({.schedule_option = ProfileSchedule{.active = 5}, .output_trace_dir = folder.path()});
    profile.step();
    at::ones({3}).exp_();
  }
  CHECK(names_in(file_of(folder, accelerator)).contains("aten::exp_"));
}

TEST_CASE("an exception ends a profile with its trace and without a collective", "[pool]") {
  Accelerator accelerator;
  const test::Folder folder(accelerator, "failed");
  try {
    auto profile = accelerator.profile({.output_trace_dir = folder.path()});
    at::ones({3}).exp_();
    throw std::runtime_error("in the loop");
  } catch (const std::runtime_error&) {
  }
  CHECK(names_in(file_of(folder, accelerator)).contains("aten::exp_"));
}

TEST_CASE("a trace that one rank cannot write is an error on all", "[pool]") {
  Accelerator accelerator;
  const test::Folder folder(accelerator, "unwritable");
  // A file where the folder should be.
  const std::filesystem::path taken = folder.path().string() + ".file";
  if (accelerator.is_main_process()) std::ofstream(taken) << "here";
  accelerator.wait_for_everyone();
  const bool fails_here = accelerator.is_last_process();
  const auto run = [&] {
    auto profile = accelerator.profile({.output_trace_dir = fails_here ? taken : folder.path()});
    at::ones({3}).exp_();
  };
  CHECK_THROWS_AS(run(), Error);
  accelerator.wait_for_everyone();
  if (accelerator.is_main_process()) std::filesystem::remove(taken);
  CHECK_FALSE(torch::profiler::impl::profilerEnabled());
}

TEST_CASE("invalid and unsupported profile options are refused", "[pool]") {
  Accelerator accelerator({.cpu = true});
  const test::Folder folder(accelerator, "refused");
  CHECK_THROWS_WITH(accelerator.profile({.activities = {ProfilerActivity::cuda}}), ContainsSubstring("uses the CPU"));
  CHECK_THROWS_WITH(accelerator.profile({.schedule_option = ProfileSchedule{.active = 0}}),
                    ContainsSubstring("schedule_option.active: expected a number of steps from 1, got 0"));
  auto profile = accelerator.profile({.output_trace_dir = folder.path()});
  CHECK_THROWS_WITH(accelerator.profile(), ContainsSubstring("another profile is running"));
}
