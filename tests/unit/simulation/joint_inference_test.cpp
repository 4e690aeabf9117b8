// Ranks whose samples are one batch: results, late ranks, mistakes of one rank.
#include "simulation/together/joint_inference.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/functional.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <hortator/models/registered.hpp>
#include <random>
#include <thread>

#include "c_run.hpp"
#include "mpi/collectives.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::test;
using namespace std::chrono_literals;
using simulation::JointInference;
using simulation::RequestLayout;
using Tensors = JointInference::Tensors;

namespace {

const mpi::Communicator& world() {
  static const auto comm = mpi::Communicator::world();
  return comm;
}

JointInference joint(std::chrono::nanoseconds patience, std::size_t bytes = 1 << 16) {
  return {world(), at::kCPU, "net", {.patience = patience, .bytes = bytes}};
}

/// A model of independent samples with two outputs, which counts its calls.
struct Model {
  int calls = 0;
  Tensors operator()(const Tensors& inputs) {
    ++calls;
    return {inputs[0] * 2 + 1, inputs[0].sum(1)};
  }
};

Tensors rows(std::int64_t count, double first) { return {at::arange(3 * count, at::kDouble).view({count, 3}) + first}; }

bool are_results(const Tensors& results, const Tensors& inputs) {
  return results.size() == 2 && results[0].equal(inputs[0] * 2 + 1) && results[1].equal(inputs[0].sum(1));
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

RequestLayout layout(const std::vector<std::vector<std::int64_t>>& shapes, at::ScalarType type = at::kFloat) {
  Tensors tensors;
  for (const auto& shape : shapes) tensors.push_back(at::zeros(shape, type));
  return simulation::layout_of(tensors).value();
}

}  // namespace

TEST_CASE("requests with the same tensors up to the number of samples are one batch", "[simulation]") {
  using simulation::common_batches;
  using Batches = std::vector<std::vector<std::size_t>>;
  const auto three = layout({{5, 3}});
  const auto more = layout({{2, 3}});
  const auto none = layout({{0, 3}});
  const auto wider = layout({{5, 4}});
  const auto exact = layout({{5, 3}}, at::kDouble);
  const auto two = layout({{5, 3}, {5}});
  const auto uneven = layout({{5, 3}, {2, 6}});
  const auto number = layout({{}});
  CHECK(common_batches({}).empty());
  CHECK(common_batches({three, more, none}) == Batches{{0, 1, 2}});
  CHECK(common_batches({three, wider, more, exact, two, wider, two}) == Batches{{0, 2}, {1, 5}, {3}, {4, 6}});
  CHECK(common_batches({uneven, uneven, number, number}) == Batches{{0}, {1}, {2}, {3}});
  CHECK(common_batches({{}, {}}) == Batches{{0}, {1}});  // without tensors

  const std::vector<RequestLayout> kinds = {three, more, wider, two, uneven};
  for (std::size_t code = 0; code < 625; ++code) {  // each request is in one batch, with those of its kind
    std::vector<RequestLayout> requests;
    std::vector<std::size_t> chosen;
    for (std::size_t rest = code, i = 0; i < 4; ++i, rest /= 5) {
      chosen.push_back(rest % 5 == 1 ? 0 : rest % 5);
      requests.push_back(kinds[rest % 5]);
    }
    std::vector<int> seen(4);
    for (const auto& batch : common_batches(requests)) {
      for (const auto index : batch) {
        ++seen[index];
        CHECK((index == batch.front() || (chosen[index] == chosen[batch.front()] && chosen[index] != 4)));
        for (std::size_t other = 0; other < 4; ++other) {
          const bool is_same = chosen[other] == chosen[index] && chosen[index] != 4;
          const bool is_beside = std::ranges::find(batch, other) != batch.end();
          CHECK((other == index || is_same == is_beside));
        }
      }
    }
    CHECK(seen == std::vector<int>(4, 1));
  }
}

TEST_CASE("a layout describes tensors in memory", "[simulation]") {
  std::vector<std::byte> memory(4096);
  const Tensors tensors = {at::ones({2, 3}), at::full({4}, 7, at::kLong), at::zeros({}, at::kDouble)};
  const auto described = simulation::layout_of(tensors).value();
  CHECK(simulation::bytes_of(described) == 3 * 64);
  const auto there = simulation::tensors_in(described, memory.data());
  REQUIRE(there.size() == 3);
  simulation::copy_to(memory.data(), described, {tensors[0].t().contiguous().t(), tensors[1], tensors[2]});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(simulation::tensors_in(described, memory.data())[i].equal(tensors[i]));
  }
  CHECK_FALSE(simulation::layout_of({at::zeros({1, 1, 1, 1, 1, 1, 1, 1, 1})}));
  CHECK_FALSE(simulation::layout_of(Tensors(9, at::zeros({1}))));
}

TEST_CASE("the samples of ranks are one batch, and each rank gets its results", "[simulation]") {
  auto together = joint(10s);
  const int rank = world().rank();
  for (std::int64_t round = 0; round < 20; ++round) {
    Model model;
    const auto inputs = rows((rank + round) % 3, rank);
    const bool has_samples = round % 3 != 0 || world().size() > 1;
    if (!has_samples) continue;
    CHECK(are_results(together.infer(inputs, std::ref(model)), inputs));
    if (rank > 0 && world().size() == 3) CHECK(model.calls == 0);  // some rank has samples
    mpi::barrier(world());
  }
  if (world().size() == 3) CHECK(together.joint_calls() == 20);
  if (world().size() == 1) CHECK(together.joint_calls() == 0);
}

TEST_CASE("a late rank delays only itself", "[simulation]") {
  if (world().size() < 2) return;
  for (const int late : {0, world().size() - 1}) {
    CAPTURE(late);
    auto together = joint(300ms);
    Model model;
    const auto inputs = rows(2, world().rank());
    mpi::barrier(world());
    if (world().rank() == late) std::this_thread::sleep_for(1800ms);
    const auto seconds = seconds_of([&] { CHECK(are_results(together.infer(inputs, std::ref(model)), inputs)); });
    CHECK(seconds < 1.5);
    CHECK(seconds > 0.28);  // they have waited for the late one, and the late one for the next batch
    const bool is_joint = late != 0 && world().size() == 3 && world().rank() != late;
    CHECK(together.joint_calls() == (is_joint ? 1 : 0));
    mpi::barrier(world());
  }
}

TEST_CASE("ranks at any pace get their own results", "[simulation]") {
  auto together = joint(300us);
  std::mt19937 random(static_cast<unsigned>(world().rank()));
  Model model;
  std::int64_t wrong = 0;
  for (int call = 0; call < 2000; ++call) {
    const auto pause = random() % 600;
    if (call % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(pause));
    const auto inputs = rows(1 + static_cast<std::int64_t>(random() % 5), world().rank() * 1e4 + call);
    wrong += are_results(together.infer(inputs, std::ref(model)), inputs) ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(model.calls > 0);
  mpi::barrier(world());
}

TEST_CASE("a mistake of one rank is an error of this rank only", "[simulation]") {
  auto together = joint(10s);
  const bool is_wrong = world().rank() == world().size() - 1;
  const auto model = [](const Tensors& inputs) -> Tensors {
    if (inputs[0].max().item<double>() > 100) throw UsageError({.what = "too large"});
    return {inputs[0] * 2 + 1, inputs[0].sum(1)};
  };
  for (const bool has_other_kind : {false, true}) {  // in the batch of the others, or in one of its own
    const auto inputs = is_wrong ? (has_other_kind ? Tensors{at::full({2, 4}, 1e3, at::kDouble)} : rows(2, 1e3))
                                 : rows(2, world().rank());
    if (is_wrong) {
      CHECK_THROWS_WITH(together.infer(inputs, model), ContainsSubstring("too large"));
    } else {
      CHECK(are_results(together.infer(inputs, model), inputs));
    }
    mpi::barrier(world());
  }
}

TEST_CASE("samples that depend on each other are not computed together", "[simulation]") {
  auto together = joint(10s);
  const auto inputs = rows(2, world().rank());
  const auto centred = [](const Tensors& all) -> Tensors { return {all[0] - all[0].mean()}; };
  const auto summed = [](const Tensors& all) -> Tensors { return {all[0].sum()}; };
  if (world().size() == 1) {
    CHECK(together.infer(inputs, summed)[0].equal(inputs[0].sum()));
  } else {
    CHECK_THROWS_WITH(together.infer(inputs, centred), ContainsSubstring("depend on each other"));
    mpi::barrier(world());
    CHECK_THROWS_WITH(together.infer(inputs, summed), ContainsSubstring("for " + std::to_string(2 * world().size())));
  }
  mpi::barrier(world());
}

TEST_CASE("ranks whose tensors have no room compute on their own without delay", "[simulation]") {
  auto together = joint(10s, 256);
  Model model;
  const auto large = rows(100, world().rank());
  CHECK(seconds_of([&] { CHECK(are_results(together.infer(large, std::ref(model)), large)); }) < 5);
  CHECK(model.calls == 1);
  mpi::barrier(world());
  const auto small = rows(1, world().rank());
  CHECK(are_results(together.infer(small, std::ref(model)), small));
  const auto results_too_large = rows(10, world().rank());  // 240 bytes, and 80 more as results
  mpi::barrier(world());
  CHECK(are_results(together.infer(results_too_large, std::ref(model)), results_too_large));
  mpi::barrier(world());
}

TEST_CASE("C infers on all ranks as one batch", "[simulation]") {
  static std::atomic<std::int64_t> largest = 0;
  models::register_module("joint_line", [] {
    return torch::nn::AnyModule(torch::nn::Functional([](const at::Tensor& input) {
      largest = std::max<std::int64_t>(largest, input.size(0));
      return input * 2 + 1;
    }));
  });
  const CRun run(
      settings_file("together", "models: {net: {type: module, name: joint_line, infer_together: {wait: 10}}}\n"));
  auto* net = run.model("net");
  const std::int64_t samples = 2 + world_rank();
  std::vector<float> data(static_cast<std::size_t>(3 * samples), static_cast<float>(world_rank()));
  std::vector<float> results(data.size());
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(data, {samples, 3})).add(HORTATOR_OUTPUT, Array(results, {samples, 3}));
  for (int call = 0; call < 3; ++call) {
    data[0] += 1;
    REQUIRE(hortator_infer(net, batch) == HORTATOR_OK);
    for (std::size_t i = 0; i < data.size(); ++i) CHECK(results[i] == 2 * data[i] + 1);
  }
  const std::vector<std::int64_t> of_all = {2, 5, 9};
  if (world_rank() == 0 && world_size() <= 3) CHECK(largest == of_all[static_cast<std::size_t>(world_size()) - 1]);
  if (world_rank() > 0) CHECK(largest == 0);
  std::vector<float> narrow(static_cast<std::size_t>(samples));
  CBatch wrong(run);
  wrong.add(HORTATOR_INPUT, Array(data, {samples, 3})).add(HORTATOR_OUTPUT, Array(narrow, {samples, 1}));
  CHECK(hortator_infer(net, wrong) == HORTATOR_USAGE);
  CHECK(error_has("its array"));
}

TEST_CASE("forces are inferred together, and evaluated", "[simulation]") {
  models::register_module("joint_energy", [] {
    return torch::nn::AnyModule(
        torch::nn::Functional([](const at::Tensor& positions) { return positions.pow(2).sum(1, /*keepdim=*/true); }));
  });
  const CRun run(settings_file("together_forces",
                               "models: {net: {type: module, name: joint_energy, forces: true, infer_together: {wait: "
                               "10}, loss: {type: mse, weights: [1, 2]}}}\n"));
  auto* net = run.model("net");
  const std::int64_t samples = 1 + world_rank();
  const auto size = static_cast<std::size_t>(3 * samples);
  std::vector<float> positions(size, 2);
  std::vector<float> energies(static_cast<std::size_t>(samples));
  std::vector<float> forces(size);
  std::vector<float> wanted_energies(energies.size(), 11);
  std::vector<float> wanted_forces(size, -1);
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(positions, {samples, 3}))
      .add(HORTATOR_OUTPUT, Array(energies, {samples, 1}))
      .add(HORTATOR_OUTPUT, Array(forces, {samples, 3}))
      .add(HORTATOR_TARGET, Array(wanted_energies, {samples, 1}))
      .add(HORTATOR_TARGET, Array(wanted_forces, {samples, 3}));
  REQUIRE(hortator_infer(net, batch) == HORTATOR_OK);
  CHECK(energies == std::vector<float>(energies.size(), 12));
  CHECK(forces == std::vector<float>(size, -4));
  double loss = 0;
  REQUIRE(hortator_evaluate(net, batch, &loss) == HORTATOR_OK);
  CHECK(loss == Approx(1 + 2 * 9));
}

TEST_CASE("settings of joint inference that cannot be are refused", "[simulation]") {
  const CRun run(settings_file("wrong_together",
                               "models:\n"
                               "  graph: {type: graph, in_features: 3, out_features: 1, infer_together: {}}\n"
                               "  wait: {type: mlp, layers: [3, 2], infer_together: {wait: -1}}\n"
                               "  memory: {type: mlp, layers: [3, 2], infer_together: {memory: 0}}\n"
                               "  key: {type: mlp, layers: [3, 2], infer_together: {patience: 1}}\n"));
  hortator_model* model = nullptr;
  for (const auto& [name, text] : {std::pair{"graph", "depend on each other"}, std::pair{"wait", "expected seconds"},
                                   std::pair{"memory", "memory"}, std::pair{"key", "patience is not a known key"}}) {
    CHECK(hortator_model_create(run, name, &model) == HORTATOR_USAGE);
    CHECK(error_has(text));
  }
}
