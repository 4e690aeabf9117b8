// Training with experts that are divided among ranks, against one rank.
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstring>
#include <hortator/error.hpp>
#include <vector>

#include "accelerator/training/training.hpp"
#include "checkpoint/read/reader.hpp"
#include "experts_models.hpp"
#include "first_ranks.hpp"
#include "fixtures.hpp"
#include "mpi/collectives.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

struct ExpertRun {
  bool is_mixtral = true;
  AcceleratorOptions options = {};
  std::int64_t first = 0, steps = 50, rows = test::expert_rows;
  std::filesystem::path load = {}, save = {};
  bool recomputes = false, by_counts = false;
};

struct ExpertCourse {
  std::vector<double> losses, norms, weights;
};

void append(std::vector<double>& to, const at::Tensor& tensor) {
  const auto values = tensor.detach().reshape({-1}).to(at::kDouble).contiguous();
  to.insert(to.end(), values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel());
}

/// One step's backward. Returns the loss of this rank's part.
template <typename Model>
at::Tensor learn(Accelerator& accelerator, Model& model, const ExpertRun& run, const test::ExpertBatch& batch) {
  using Net = std::remove_cvref_t<decltype(model.module())>;
  if constexpr (std::is_base_of_v<models::PretrainedModel, Net>) {
    const auto outputs = model(models::ModelInputs{.input_ids = batch.ids});
    const auto loss = test::token_losses(outputs.logits, batch.targets, at::Reduction::Mean) + 0.05 * outputs.aux_loss;
    accelerator.backward(loss);
    return loss.detach();
  } else {
    const auto logits = model(batch.ids);
    if (run.by_counts) {
      const auto sum = test::token_losses(logits, batch.targets, at::Reduction::Sum);
      accelerator.backward(sum, static_cast<double>(batch.targets.numel()));
      return sum.detach() * accelerator.num_processes() / static_cast<double>(run.rows * test::expert_length);
    }
    const auto loss = test::token_losses(logits, batch.targets, at::Reduction::Mean) +
                      0.05 * nn::load_balancing_loss(model.module()) + 0.001 * nn::router_z_loss(model.module());
    accelerator.backward(loss);
    return loss.detach();
  }
}

template <typename Net>
ExpertCourse train_with(Accelerator& accelerator, const ExpertRun& run, Net& net, torch::optim::Optimizer& steps) {
  auto [model, optimizer] = accelerator.prepare(net, steps);
  if (!run.load.empty()) accelerator.load_state(run.load);
  const auto& data = accelerator::Training::of(accelerator).data();
  ExpertCourse course;
  for (auto step = run.first; step < run.first + run.steps; ++step) {
    const auto loss = learn(accelerator, model, run, test::ExpertBatch(step % 5, data.index(), data.size(), run.rows));
    course.norms.push_back(accelerator.clip_grad_norm_(model.parameters(), 1.0).template item<double>());
    optimizer.step();
    optimizer.zero_grad();
    course.losses.push_back(accelerator.reduce(loss, Reduce::mean).template item<double>());
  }
  if (!run.save.empty()) accelerator.save_state(run.save);
  {
    const auto whole = accelerator.summon_full_parameters(model);
    for (const auto& parameter : model.parameters()) append(course.weights, parameter);
  }
  accelerator.wait_for_everyone();
  return course;
}

ExpertCourse train(const ExpertRun& run) {
  Accelerator accelerator(run.options);
  if (run.is_mixtral) {
    auto net = test::mixtral();
    if (run.recomputes) net->set_recompute_layers(true);
    torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
    return train_with(accelerator, run, *net, adam);
  }
  test::ExpertNet net;
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  return train_with(accelerator, run, net, sgd);
}

std::vector<double> from_first(const std::vector<double>& values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  const auto all = mpi::broadcast(mpi::Communicator::world(), bytes, 0);
  std::vector<double> result(all.size() / sizeof(double));
  std::memcpy(result.data(), all.data(), all.size());
  return result;
}

/// What one rank computes, given to all ranks.
ExpertCourse train_alone(ExpertRun run) {
  ExpertCourse course;
  {
    const test::FirstRanks first(1);
    run.options.communicator = first.handle();
    if (first.is_in()) course = train(run);
  }
  return {from_first(course.losses), from_first(course.norms), from_first(course.weights)};
}

void check_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance = 1e-5) {
  REQUIRE(found.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) worst = std::max(worst, std::abs(found[i] - expected[i]));
  CHECK(worst < tolerance);
}

/// All numbers of ranks among which experts can be divided here.
std::vector<int> divisions() {
  std::vector<int> all;
  for (const int experts : {2, 3, 4})
    if (State().num_processes() % experts == 0) all.push_back(experts);
  return all;
}

AcceleratorOptions divided_by(int experts) { return {.parallel = {.experts = experts}}; }

std::map<std::string, at::Tensor> tensors_in(const std::filesystem::path& folder) {
  const checkpoint::Reader reader(folder);
  std::map<std::string, at::Tensor> all;
  for (const auto& [name, spec] : reader.tensors()) all.emplace(name, reader.read(name));
  return all;
}

void check_equal(const std::map<std::string, at::Tensor>& found, const std::map<std::string, at::Tensor>& expected) {
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, values] : expected) {
    INFO(name);
    CHECK(at::equal(found.at(name), values));
  }
}

}  // namespace

TEST_CASE("fifty steps with divided experts have the losses, norms and weights of one rank") {
  for (const bool is_mixtral : {true, false}) {
    INFO((is_mixtral ? "Mixtral" : "a user's model"));
    const auto expected = train_alone({.is_mixtral = is_mixtral});
    CHECK(expected.losses.back() < expected.losses.front() - 0.1);
    auto all = divisions();
    all.push_back(1);
    for (const int experts : all) {
      INFO("experts " << experts);
      const auto found = train({.is_mixtral = is_mixtral, .options = divided_by(experts)});
      check_near(found.losses, expected.losses);
      check_near({found.norms.front()}, {expected.norms.front()});
      if (!is_mixtral) check_near(found.weights, expected.weights);
    }
  }
}

TEST_CASE("ranks with different numbers of tokens count each once") {
  const auto expected = train_alone({.is_mixtral = false, .steps = 20, .rows = 11, .by_counts = true});
  for (const int experts : divisions()) {
    const auto found =
        train({.is_mixtral = false, .options = divided_by(experts), .steps = 20, .rows = 11, .by_counts = true});
    check_near(found.losses, expected.losses);
    check_near(found.weights, expected.weights);
  }
}

TEST_CASE("recomputed layers send their tokens again, bit by bit") {
  for (const int experts : divisions()) {
    const auto expected = train({.options = divided_by(experts), .steps = 5});
    const auto found = train({.options = divided_by(experts), .steps = 5, .recomputes = true});
    CHECK(found.losses == expected.losses);
    CHECK(found.weights == expected.weights);
  }
}

TEST_CASE("ranks that hold the same experts hold the same values") {
  for (const int experts : divisions()) {
    auto options = divided_by(experts);
    options.ddp.check_replicas_every = 1;
    CHECK_NOTHROW(train({.options = options, .steps = 3}));
  }
}

TEST_CASE("gradients of micro-steps add up before experts are averaged") {
  const auto steps = [](const AcceleratorOptions& options) {
    Accelerator accelerator(options);
    test::ExpertNet net;
    auto model = accelerator.prepare(net);
    const auto& data = accelerator::Training::of(accelerator).data();
    for (int micro = 0; micro < 2; ++micro) {
      const auto scope = accelerator.accumulate(model);
      const test::ExpertBatch batch(micro, data.index(), data.size());
      accelerator.backward(test::token_losses(model(batch.ids), batch.targets, at::Reduction::Mean));
    }
    return std::vector{accelerator.clip_grad_norm_(model.parameters(), 1e9).item<double>()};
  };
  std::vector<double> alone;
  {
    const test::FirstRanks first(1);
    if (first.is_in()) alone = steps({.gradient_accumulation_steps = 2, .communicator = first.handle()});
  }
  alone = from_first(alone);
  for (const int experts : divisions())
    check_near(steps({.gradient_accumulation_steps = 2, .parallel = {.experts = experts}}), alone);
}

TEST_CASE("experts beside divided sequences") {
  if (State().num_processes() != 4) return;
  const auto losses = [](const AcceleratorOptions& options) {
    Accelerator accelerator(options);
    test::ExpertNet net;
    torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    const auto& data = accelerator::Training::of(accelerator).data();
    std::vector<double> all;
    for (int step = 0; step < 20; ++step) {
      test::ExpertBatch batch(step % 5, data.index(), data.size());
      const auto divided = accelerator.maybe_context_parallel({{&batch.ids, 1}, {&batch.targets, 1}});
      const auto sum = test::token_losses(model(batch.ids), batch.targets, at::Reduction::Sum);
      const auto balance = nn::load_balancing_loss(model.module());
      accelerator.backward(sum / static_cast<double>(batch.targets.numel()) + 0.05 * balance);
      all.push_back(accelerator.clip_grad_norm_(model.parameters(), 1.0).item<double>());
      optimizer.step();
      optimizer.zero_grad();
    }
    return all;
  };
  std::vector<double> alone;
  {
    const test::FirstRanks first(1);
    if (first.is_in()) alone = losses({.communicator = first.handle()});
  }
  check_near(losses({.parallel = {.context = 2, .experts = 2}}), from_first(alone), 1e-4);
}

TEST_CASE("tokens beyond the capacity of a rank's batch are dropped, also by experts of other ranks") {
  for (const int experts : divisions()) {
    Accelerator accelerator(divided_by(experts));
    test::ExpertNet net(test::expert_count, 0.5), alone(test::expert_count, 0.5);
    auto model = accelerator.prepare(net);
    const test::ExpertBatch batch(1, accelerator.process_index(), accelerator.num_processes());
    const auto found = model(batch.ids);
    CHECK(at::allclose(found, alone->forward(batch.ids), 1e-4, 1e-5));
    CHECK(net->first->routing().dropped > 0);
    CHECK(net->first->routing().dropped == alone->first->routing().dropped);
  }
}

TEST_CASE("mixed precision trains divided experts as it trains whole ones") {
  const auto expected = train_alone({.options = {.mixed_precision = Precision::bf16}, .steps = 10});
  for (const int experts : divisions()) {
    auto options = divided_by(experts);
    options.mixed_precision = Precision::bf16;
    check_near(train({.options = options, .steps = 10}).losses, expected.losses, 0.03);  // bf16 has 8 bits
  }
}

TEST_CASE("checkpoints hold whole experts and moments, and any number of ranks resumes from them") {
  const State state;
  const test::Folder folder(state, "experts_checkpoints");
  const auto alone = folder.path() / "alone";
  train_alone({.steps = 3, .save = alone});
  const auto expected = tensors_in(alone);
  const auto next = train_alone({.first = 3, .steps = 3, .load = alone});
  for (const int experts : divisions()) {
    INFO("experts " << experts);
    const auto name = std::to_string(experts);
    const auto divided = folder.path() / name, again = folder.path() / (name + "-again");
    train({.options = divided_by(experts), .steps = 3, .save = divided});
    const auto found = tensors_in(divided);
    REQUIRE(found.size() == expected.size());
    for (const auto& [tensor, values] : expected) {
      INFO(tensor);
      REQUIRE(found.at(tensor).sizes() == values.sizes());
      CHECK(at::allclose(found.at(tensor), values, 1e-4, 1e-5));
    }
    // One rank reads what divided experts wrote, and writes the same bytes, and vice versa; so do other divisions.
    train_alone({.steps = 0, .load = divided, .save = again});
    check_equal(tensors_in(again), found);
    const auto back = folder.path() / (name + "-back");
    train({.options = divided_by(experts), .steps = 0, .load = alone, .save = back});
    check_equal(tensors_in(back), expected);
    for (const int others : divisions()) {
      const auto other = folder.path() / (name + "-by-" + std::to_string(others));
      train({.options = divided_by(others), .steps = 0, .load = divided, .save = other});
      check_equal(tensors_in(other), found);
    }
    check_near(train({.options = divided_by(experts), .first = 3, .steps = 3, .load = alone}).losses, next.losses);
  }
}

TEST_CASE("exports of divided experts are whole, and a module has whole ones when its Accelerator has ended") {
  const State state;
  const test::Folder folder(state, "experts_export");
  for (const int experts : divisions()) {
    const auto saved = folder.path() / ("model-" + std::to_string(experts));
    auto net = test::mixtral(), whole = test::mixtral();
    const auto parameters = whole->named_parameters();
    const test::ExpertBatch batch(0, 0, 1);
    {
      Accelerator accelerator(divided_by(experts));
      auto model = accelerator.prepare(*net);
      const auto dict = accelerator.get_state_dict(model);
      for (const auto& item : parameters)
        if (accelerator.is_main_process()) CHECK(at::equal(dict.get<at::Tensor>(item.key()), item.value()));
      accelerator.save_model(model, saved);
      if (accelerator.is_main_process()) models::save_config(*net, saved);
      accelerator.wait_for_everyone();
      const auto loaded = models::from_pretrained(saved);
      for (const auto& item : loaded->named_parameters()) CHECK(at::equal(item.value(), parameters[item.key()]));
      const auto before = model(models::ModelInputs{.input_ids = batch.ids}).logits;
      CHECK(at::allclose(before, whole->forward({.input_ids = batch.ids}).logits, 1e-4, 1e-5));
      accelerator.load_checkpoint_in_model(model, saved);
      CHECK(at::equal(model(models::ModelInputs{.input_ids = batch.ids}).logits, before));
      accelerator.wait_for_everyone();
    }
    for (const auto& item : net->named_parameters()) CHECK(at::equal(item.value(), parameters[item.key()]));
    CHECK(at::equal(net->forward({.input_ids = batch.ids}).logits, whole->forward({.input_ids = batch.ids}).logits));
  }
}

TEST_CASE("a rank holds its part of the experts") {
  for (const int experts : divisions()) {
    Accelerator accelerator(divided_by(experts));
    test::ExpertNet net;
    auto model = accelerator.prepare(net);
    CHECK(net->first->experts->gate_up_proj.numel() * experts == test::expert_count * 40 * 16);
  }
}

TEST_CASE("what cannot be divided is refused on all ranks, with the reason") {
  const int ranks = State().num_processes();
  CHECK_THROWS_WITH(Accelerator({.parallel = {.experts = ranks + 1}}), ContainsSubstring("parallel.experts is"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.experts = 0}}), ContainsSubstring("parallel.experts is 0"));
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 1}, .parallel = {.experts = 2}}),
                    ContainsSubstring("zero.stage is 1"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.tensor = 2, .experts = 2}}), ContainsSubstring("parallel.tensor is 2"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.experts = 2}, .reproducible = true}), ContainsSubstring("reproducible"));
  for (const int experts : divisions()) {
    Accelerator accelerator(divided_by(experts));
    test::Net without;
    CHECK_THROWS_WITH(accelerator.prepare(without), ContainsSubstring("the model has no experts"));
    test::ExpertNet odd(experts + 1);
    CHECK_THROWS_WITH(accelerator.prepare(odd), ContainsSubstring("use a divisor of the number of experts"));
    test::ExpertNet net;
    torch::optim::LBFGS lbfgs(net->parameters(), torch::optim::LBFGSOptions(0.1));
    auto [model, optimizer] = accelerator.prepare(net, lbfgs);
    const test::ExpertBatch batch(0, 0, 1);
    const auto loss = [&, &model = model] {
      return test::token_losses(model(batch.ids), batch.targets, at::Reduction::Mean);
    };
    CHECK_THROWS_WITH(optimizer.step(loss), ContainsSubstring("parallel.experts"));
    CHECK_THROWS_WITH(LocalSGD(accelerator, model, {}), ContainsSubstring("parallel.experts"));
    CHECK_THROWS_WITH(accelerator.join_uneven_inputs({model}), ContainsSubstring("parallel.experts"));
  }
}
