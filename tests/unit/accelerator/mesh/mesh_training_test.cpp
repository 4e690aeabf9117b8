// A run with an axis tensor along which nothing is divided is the run of its data ranks: weights, data, random numbers,
// norms, metrics, checkpoints.
#include <ATen/ops/mse_loss.h>

#include <cstring>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/parallel/collectives.hpp>
#include <hortator/parallel/local_sgd.hpp>
#include <optional>
#include <stdexcept>
#include <vector>

#include "accelerator/training/training.hpp"
#include "mpi/collectives.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/first_ranks.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using parallel::Axis;

namespace {

const TensorPlan nothing_divided = {{.pattern = "*"}};
constexpr std::int64_t samples = 13;  // neither batches nor ranks divide it

struct Course {
  std::vector<float> losses = {};
  std::vector<float> norms = {};
  std::vector<float> weights = {};
  std::vector<float> targets = {};  ///< gathered for metrics in the last epoch
  std::size_t own_values = 0;

  bool operator==(const Course&) const = default;
};

void append(std::vector<float>& to, const at::Tensor& tensor) {
  const auto values = tensor.detach().reshape({-1}).to(at::kFloat).contiguous();
  to.insert(to.end(), values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
}

struct Plan {
  int epochs = 3;
  std::filesystem::path load = {};
  std::filesystem::path save = {};
};

Course train(AcceleratorOptions options, const Plan& plan = {}) {
  Accelerator accelerator(std::move(options));
  set_seed(100 + static_cast<std::uint64_t>(accelerator.process_index()));  // other first weights on each rank
  test::Net net(0.3);
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(0.05));
  set_seed(5, {.device_specific = true});
  auto [model, optimizer, loader] =
      accelerator.prepare(net, adam, data_loader(test::Rows{samples}, {.batch_size = 2, .shuffle = true}));
  if (!plan.load.empty()) accelerator.load_state(plan.load);
  Course course;
  for (int epoch = 0; epoch < plan.epochs; ++epoch) {
    for (const auto& batch : loader) {
      const auto loss = at::mse_loss(model(batch.data), batch.target);
      append(course.losses, accelerator.gather(loss));
      append(course.losses, accelerator.reduce(loss.detach(), Reduce::mean));
      accelerator.backward(loss);
      append(course.norms, accelerator.clip_grad_norm_(model.parameters(), 0.5));
      optimizer.step();
      optimizer.zero_grad();
      if (epoch + 1 == plan.epochs) append(course.targets, accelerator.gather_for_metrics(batch.target));
    }
  }
  if (!plan.save.empty()) accelerator.save_state(plan.save);
  {
    const auto whole = accelerator.summon_full_parameters(model);
    for (const auto& parameter : net->parameters()) append(course.weights, parameter);
  }
  course.own_values = accelerator.split_between_processes(std::vector<int>(7)).size();
  CHECK(accelerator.gather_object(accelerator.process_index()).size() ==
        static_cast<std::size_t>(parallel::ranks_along(Axis::replicate) * parallel::ranks_along(Axis::shard)));
  accelerator.wait_for_everyone();
  return course;
}

/// What the first half of the ranks compute without an axis tensor, given to all ranks: to rank r that of rank r / 2.
Course course_of_half(AcceleratorOptions options, const Plan& plan = {}) {
  const auto world = mpi::Communicator::world();
  Course course;
  {
    const test::FirstRanks first(world.size() / 2);
    options.communicator = first.handle();
    if (first.is_in()) course = train(options, plan);
  }
  std::string mine(sizeof(std::size_t), '\0');
  std::memcpy(mine.data(), &course.own_values, sizeof course.own_values);
  const auto values = mpi::all_gather(world, std::string_view(mine));
  for (auto* numbers : {&course.losses, &course.norms, &course.weights, &course.targets}) {
    const auto bytes = mpi::broadcast(
        world, std::string_view(reinterpret_cast<const char*>(numbers->data()), numbers->size() * sizeof(float)), 0);
    numbers->resize(bytes.size() / sizeof(float));
    std::memcpy(numbers->data(), bytes.data(), bytes.size());
  }
  std::memcpy(&course.own_values, values[static_cast<std::size_t>(world.rank() / 2)].data(), sizeof(std::size_t));
  return course;
}

bool has_pairs() { return State().num_processes() % 2 == 0; }

}  // namespace

TEST_CASE("with an axis tensor and nothing divided a training is bitwise that of its data ranks") {
  if (!has_pairs()) return;
  for (const auto stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    const AcceleratorOptions options = {.zero = {.stage = stage}};
    auto in_pairs = options;
    in_pairs.parallel.tensor = 2;
    in_pairs.parallel.plan = nothing_divided;
    const auto course = train(in_pairs);
    CHECK(course == course_of_half(options));
    CHECK(course.targets.size() == samples);
  }
}

TEST_CASE("replicas of sets of shards, asked for as parallel.replicate") {
  const State state;
  if (state.num_processes() != 4) return;
  const auto whole = train({.zero = {.stage = 2, .shard_group = 2}});
  CHECK(train({.zero = {.stage = 2}, .parallel = {.replicate = 2}}) == whole);
  CHECK(train({.zero = {.stage = 2}, .parallel = {.shard = 2}}) == whole);
}

TEST_CASE("a checkpoint holds the same whatever the mesh, and any mesh resumes from it") {
  if (!has_pairs()) return;
  const State state;
  const test::Folder folder(state, "mesh_training");
  for (const auto stage : {0, 2, 3}) {
    INFO("stage " << stage);
    AcceleratorOptions options = {.zero = {.stage = stage}};
    auto in_pairs = options;
    in_pairs.parallel.tensor = 2;
    in_pairs.parallel.plan = nothing_divided;
    const auto plain = folder.path() / ("plain" + std::to_string(stage));
    const auto paired = folder.path() / ("paired" + std::to_string(stage));
    const auto at_save = train(in_pairs, {.save = paired});
    CHECK(at_save == course_of_half(options, {.save = plain}));
    // The same half resumes from either; random numbers are drawn afresh from one seed where the mesh differs.
    const auto from_plain = course_of_half(options, {.epochs = 0, .load = plain});
    CHECK(course_of_half(options, {.epochs = 0, .load = paired}).weights == from_plain.weights);
    CHECK(train(in_pairs, {.epochs = 0, .load = plain}).weights == from_plain.weights);
    CHECK(from_plain.weights == at_save.weights);
    // On its own mesh the next epoch follows exactly, dropout included.
    const auto next = train(in_pairs, {.epochs = 1, .load = paired});
    CHECK(next == course_of_half(options, {.epochs = 1, .load = plain}));
  }
}

TEST_CASE("after a change of the mesh the ranks of a tensor group still draw equal numbers") {
  if (!has_pairs()) return;
  const State state;
  const test::Folder folder(state, "mesh_random");
  train({}, {.epochs = 1, .save = folder.path() / "state"});
  Accelerator accelerator({.parallel = {.tensor = 2, .plan = nothing_divided}});
  test::Net net(0.3);
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(0.05));
  auto [model, optimizer, loader] =
      accelerator.prepare(net, adam, data_loader(test::Rows{samples}, {.batch_size = 2, .shuffle = true}));
  accelerator.load_state(folder.path() / "state");
  const auto drawn = parallel::all_gather(at::rand({1}), Axis::tensor);
  CHECK(drawn[0].item<float>() == drawn[1].item<float>());
}

namespace {

// Draws a number for each sample, and fails in each batch of four.
struct FailingRows {
  std::int64_t size() const { return 8; }
  at::Tensor get(std::int64_t i) const {
    auto drawn = at::rand({1});
    if (i % 4 == 2) throw std::runtime_error("no such row");
    return drawn;
  }
};

}  // namespace

TEST_CASE("a model's random numbers are what they were when reading a batch fails") {
  if (!has_pairs()) return;
  Accelerator accelerator({.parallel = {.tensor = 2, .plan = nothing_divided}});
  auto loader = accelerator.prepare(data_loader(FailingRows{}, {.batch_size = 4}));
  set_seed(9);
  const auto expected = at::rand({1}).item<float>();
  set_seed(9);
  CHECK_THROWS_WITH(
      [&] {
        for (const auto& batch : loader) static_cast<void>(batch);
      }(),
      ContainsSubstring("no such row"));
  CHECK(at::rand({1}).item<float>() == expected);
}

TEST_CASE("set_seed with device_specific gives each tensor group numbers of its own") {
  if (!has_pairs()) return;
  set_seed(3, {.device_specific = true});  // each rank another seed
  const Accelerator accelerator({.parallel = {.tensor = 2}});
  const auto check = [] {
    const auto drawn = at::rand({1});
    const auto of_group = parallel::all_gather(drawn, Axis::tensor);
    CHECK(of_group[0].item<float>() == of_group[1].item<float>());
    const auto of_others = parallel::all_gather(drawn, Axis::replicate);
    if (of_others.numel() > 1) CHECK(of_others[0].item<float>() != of_others[1].item<float>());
  };
  check();
  set_seed(4, {.device_specific = true});
  check();
}

TEST_CASE("LocalSGD is refused where ranks train one model together") {
  if (!has_pairs()) return;
  Accelerator accelerator({.parallel = {.tensor = 2, .plan = nothing_divided}});
  test::Net net;
  auto model = accelerator.prepare(net);
  CHECK_THROWS_WITH(LocalSGD(accelerator, model, {.steps = 2}), ContainsSubstring("LocalSGD was called with the mesh"));
}

TEST_CASE("axes that the ranks do not fill are refused on all ranks, with the reason") {
  const State state;
  const int ranks = state.num_processes();
  CHECK_THROWS_WITH(Accelerator({.parallel = {.tensor = ranks + 1}}), ContainsSubstring("must divide"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.pipeline = ranks + 1}}), ContainsSubstring("must divide"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.shard = 2}}), ContainsSubstring("zero.stage is 0"));
}

TEST_CASE("ranks that ask for different axes are an error") {
  const State state;
  if (!has_pairs()) return;
  CHECK_THROWS_WITH(Accelerator({.parallel = {.tensor = state.process_index() == 0 ? 1 : 2}}),
                    ContainsSubstring("differs between ranks"));
}
