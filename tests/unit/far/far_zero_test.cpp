// ZeRO on a device: parameters and moments in the memory of the device, of the host, or in files, beside the same on
// CPUs.
#include "far_training.hpp"
#include "support/catch.hpp"

using namespace hortator;
using test::far_device;
using test::FarCourse;
using test::FarTraining;
using test::Home;

namespace {

struct FarOutcome {
  std::vector<double> losses = {};
  std::vector<at::Tensor> parameters = {};
};

FarOutcome run(const FarCourse& course) {
  FarTraining training(course);
  FarOutcome outcome;
  for (int number = 0; number < 5; ++number) outcome.losses.push_back(training.step(number));
  outcome.parameters = training.end();
  return outcome;
}

void check_near(const FarOutcome& actual, const FarOutcome& expected) {
  for (std::size_t i = 0; i < expected.losses.size(); ++i) CHECK(actual.losses[i] == Approx(expected.losses[i]));
  for (std::size_t i = 0; i < expected.parameters.size(); ++i)
    CHECK(at::allclose(actual.parameters[i].to(at::kCPU), expected.parameters[i].to(at::kCPU), 1e-5, 1e-5));
}

/// Equal bit for bit; close for three and more ranks, where the owner of an element determines the order of its sum.
void check_same(const FarOutcome& actual, const FarOutcome& expected) {
  if (mpi::Communicator::world().size() > 2) return check_near(actual, expected);
  CHECK(actual.losses == expected.losses);
  for (std::size_t i = 0; i < expected.parameters.size(); ++i)
    CHECK(testing::same_bits(actual.parameters[i].to(at::kCPU), expected.parameters[i].to(at::kCPU)));
}

}  // namespace

TEST_CASE("each stage on the far device trains as the first one, and close to the CPU", "[far]") {
  const auto expected = run({.stage = 1});
  CHECK(expected.losses.back() < expected.losses.front());
  for (const int stage : {2, 3}) {
    INFO("stage " << stage);
    check_same(run({.stage = stage}), expected);
  }
  check_near(expected, run({.stage = 1, .device = at::kCPU}));
}

TEST_CASE("stage 3 with parameters and moments in the host's memory or in files trains the same", "[far]") {
  const auto expected = run({.stage = 1});
  for (const auto parameters : {Home::in_memory, Home::in_host, Home::in_file}) {
    for (const auto moments : {Home::in_memory, Home::in_host, Home::in_file}) {
      INFO(static_cast<int>(parameters) << " " << static_cast<int>(moments));
      check_same(run({.parameters = parameters, .moments = moments}), expected);
    }
  }
}

TEST_CASE("bf16 with offloaded fp32 copies and resident parameters trains the same", "[far]") {
  const auto expected = run({.stage = 1, .type = at::kBFloat16});
  for (const auto home : {Home::in_host, Home::in_file})
    check_same(run({.parameters = home, .moments = home, .type = at::kBFloat16, .keep_resident = {"first", "scale"}}),
               expected);
}

TEST_CASE("over NCCL the same stages train close to it", "[far]") {
  const test::CleanMock clean;
  const auto expected = run({.stage = 1});
  for (const auto home : {Home::in_memory, Home::in_host})
    check_near(run({.over_nccl = true, .parameters = home, .moments = home}), expected);
}

TEST_CASE("parameters that came from the host return there with their moments, those of the device stay", "[far]") {
  for (const bool from_host : {true, false}) {
    FarTraining training({.comes_from_host = from_host, .parameters = Home::in_host, .moments = Home::in_host});
    training.step(0);
    CHECK(training.net()->second->weight.device() == far_device);
    training.end();
    const auto& weight = training.net()->second->weight;
    CHECK(weight.device() == (from_host ? c10::Device(at::kCPU) : far_device));
    CHECK(training.mean_of(weight).device() == weight.device());
    CHECK(training.mean_of(weight).sizes() == weight.sizes());
  }
}

TEST_CASE("groups that hold the same shard train as one, and backward does not wait between their reductions",
          "[far]") {
  if (mpi::Communicator::world().size() == 1) return;
  check_near(run({.stage = 2, .is_replicated = true}), run({.stage = 1}));
  const test::CleanMock clean;
  check_near(run({.stage = 2, .over_nccl = true, .is_replicated = true}), run({.stage = 1}));
  FarTraining training({.stage = 2, .over_nccl = true, .is_replicated = true});
  training.step(0);  // makes connections
  test::clear_trace();
  training.step(1);
  const auto lines = test::trace();
  const std::string scatter = "ncclReduceScatter";
  const std::string reduce = "ncclAllReduce";
  auto next = std::ranges::find(lines, scatter);
  int pairs = 0;
  for (; next != lines.end(); next = std::find(next + 1, lines.end(), scatter), ++pairs) {
    const auto following = std::find(next, lines.end(), reduce);
    REQUIRE(following != lines.end());
    CHECK(std::find(next, following, "the current stream waits for the mark") == following);
  }
  CHECK(pairs > 1);
  training.end();
}
