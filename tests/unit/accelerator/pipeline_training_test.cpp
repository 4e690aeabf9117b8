// Training along a pipeline is that of one rank: losses, norms, weights, checkpoints, whatever the schedule.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>

#include <cmath>
#include <fstream>
#include <hortator/nn/pipeline.hpp>
#include <hortator/parallel/local_sgd.hpp>
#include <hortator/training/gradient_norms.hpp>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

#include "accelerator/training/training.hpp"
#include "first_ranks.hpp"
#include "fixtures.hpp"
#include "mpi/collectives.hpp"
#include "parallel/data_parallel/backward_pass.hpp"
#include "parallel/pipeline/staged_module.hpp"
#include "support/catch.hpp"

using namespace hortator;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t vocabulary = 23, width = 8, length = 5, rows = 16;

/// A user's own module: an embedding that is also the head, and layers.
struct ChainImpl : torch::nn::Module, HasPipelineLayers {
  explicit ChainImpl(std::int64_t layers = 8, bool recomputes = false, bool is_tied = true)
      : recomputes(recomputes), is_tied(is_tied) {
    embed = register_module("embed", torch::nn::Embedding(vocabulary, width));
    this->layers = register_module("layers", torch::nn::ModuleList());
    for (std::int64_t i = 0; i < layers; ++i) this->layers->push_back(torch::nn::Linear(width, width));
    norm = register_module("norm", torch::nn::BatchNorm1d(width));
    if (!is_tied) head = register_module("head", torch::nn::Linear(width, vocabulary));
  }
  std::vector<std::string> pipeline_layers() const override {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < layers->size(); ++i) names.push_back("layers." + std::to_string(i));
    return names;
  }
  std::vector<at::Tensor> used_after_layers() const override {
    return is_tied ? std::vector{embed->weight} : std::vector<at::Tensor>();
  }

  at::Tensor forward(const at::Tensor& ids) {
    PipelineLayers stage(layers->size());
    auto x = stage.enter([&] { return embed(ids); });
    for (const auto i : stage) {
      const auto layer = [this, i](const at::Tensor& in) {
        if (on_layer) on_layer(i);
        return in + at::dropout(at::tanh(layers[i]->as<torch::nn::Linear>()->forward(in)), dropout, is_training());
      };
      x = recomputes ? recompute(layer, x) : layer(x);
    }
    stage.leave(x);
    x = norm(x.flatten(0, 1)).view_as(x);
    return is_tied ? at::linear(x, embed->weight) : head(x);
  }

  bool recomputes, is_tied;
  double dropout = 0;
  std::function<void(std::size_t)> on_layer;
  torch::nn::Embedding embed = nullptr;
  torch::nn::ModuleList layers = nullptr;
  torch::nn::BatchNorm1d norm = nullptr;
  torch::nn::Linear head = nullptr;
};
TORCH_MODULE(Chain);

struct Words {
  at::Tensor ids, targets;
  auto fields() { return std::tie(ids, targets); }
};

/// This data rank's rows of the batch of a step.
Words batch_of(std::int64_t step, std::int64_t part = 0, std::int64_t parts = 1) {
  const auto count = rows * length;
  const auto ids = (at::arange(count, at::kLong) * (step + 3) + step).remainder(vocabulary).view({rows, length});
  const auto targets = (ids * 7 + 1).remainder(vocabulary);
  const auto own = rows / parts;
  return {ids.narrow(0, part * own, own), targets.narrow(0, part * own, own)};
}

struct Course {
  std::vector<double> losses = {}, norms = {};
  StateDict weights = {};  ///< on the main process
};

struct Plan {
  AcceleratorOptions options = {};
  std::int64_t micro_batches = 4, first = 0, steps = 4;
  bool recomputes = false, is_tied = true, counts = false, has_batch_statistics = false;
  double dropout = 0;
  std::filesystem::path load = {}, save = {}, model = {};
};

/// The statistics of batches differ between micro-batches: they are those of one rank only with the same ones.
void use_running_statistics(ChainImpl& net) { net.norm->eval(); }

Course train(const Plan& plan) {
  Accelerator accelerator(plan.options);
  set_seed(11);
  Chain net(8, plan.recomputes, plan.is_tied);
  if (!plan.has_batch_statistics) use_running_statistics(*net);
  net->dropout = plan.dropout;
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(0.01));
  auto [model, optimizer] = accelerator.prepare(net, adam);
  if (!plan.load.empty()) accelerator.load_state(plan.load);
  const auto& data = accelerator::Training::of(accelerator).data();
  Course course;
  for (auto step = plan.first; step < plan.first + plan.steps; ++step) {
    auto micro_step = accelerator.accumulate(model);
    const auto batch = batch_of(step, data.index(), data.size());
    const auto logits = [](auto& model, Words& part) { return model(part.ids).flatten(0, 1); };
    at::Tensor loss;
    if (plan.counts) {
      const auto sum = [&](auto& model, Words& part) {
        const auto each = at::cross_entropy_loss(logits(model, part), part.targets.flatten(), {}, at::Reduction::Sum);
        return std::pair(each, part.targets.numel());
      };
      loss = accelerator.pipeline_step(model, batch, sum, {.micro_batches = plan.micro_batches});
    } else {
      const auto mean = [&](auto& model, Words& part) {
        return at::cross_entropy_loss(logits(model, part), part.targets.flatten());
      };
      loss = accelerator.pipeline_step(model, batch, mean, {.micro_batches = plan.micro_batches});
    }
    course.losses.push_back(accelerator.reduce(loss, Reduce::mean).item<double>());
    if (accelerator.sync_gradients())
      course.norms.push_back(accelerator.clip_grad_norm_(model.parameters(), 0.5).item<double>());
    optimizer.step();
    optimizer.zero_grad();
  }
  course.weights = accelerator.get_state_dict(model);
  if (!plan.save.empty()) accelerator.save_state(plan.save);
  if (!plan.model.empty()) accelerator.save_model(model, plan.model);
  return course;
}

/// What one rank computes, on that rank; other ranks get an empty course.
Course course_of_one(Plan plan) {
  const test::FirstRanks first(1);
  plan.options.parallel = {};
  plan.options.communicator = first.handle();
  return first.is_in() ? train(plan) : Course();
}

double distance(const StateDict& a, const StateDict& b) {
  CHECK(a.values().size() == b.values().size());
  double most = 0;
  for (const auto& [name, value] : a.values()) {
    const auto& left = std::get<at::Tensor>(value);
    const auto right = b.get<at::Tensor>(name);
    if (left.numel() > 0)
      most = std::max(most, (left.to(at::kDouble) - right.to(at::kDouble)).abs().max().item<double>());
  }
  return most;
}

void check_near(const Course& course, const Course& expected, double tolerance = 1e-5) {
  if (expected.losses.empty()) return;  // another rank compares
  REQUIRE(course.losses.size() == expected.losses.size());
  for (std::size_t i = 0; i < course.losses.size(); ++i) {
    INFO("step " << i);
    CHECK(std::abs(course.losses[i] - expected.losses[i]) <= tolerance);
  }
  for (std::size_t i = 0; i < course.norms.size(); ++i)
    CHECK(std::abs(course.norms[i] - expected.norms[i]) <= 10 * tolerance * expected.norms[i]);
  CHECK(distance(course.weights, expected.weights) <= 100 * tolerance);
}

ParallelConfig stages(int ranks, PipelineSchedule schedule = PipelineSchedule::one_f_one_b) {
  return {.pipeline = ranks, .pipeline_schedule = schedule};
}

int ranks() { return State().num_processes(); }

/// @collective
bool same_everywhere(const at::Tensor& tensor) {
  const auto values = tensor.detach().clone(at::MemoryFormat::Contiguous);
  const std::string_view bytes(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
  const auto all = mpi::all_gather(mpi::Communicator::world(), bytes);
  return std::ranges::all_of(all, [&](const auto& one) { return one == all.front(); });
}

}  // namespace

namespace {

/// Compares each schedule with one rank's training.
void check_schedules(const Plan& plan, std::initializer_list<std::int64_t> micro_batches) {
  const auto expected = course_of_one(plan);
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
                              PipelineSchedule::zero_bubble}) {
    for (const auto micro : micro_batches) {
      const bool takes_turns = schedule == PipelineSchedule::interleaved;
      if (takes_turns && micro % std::max<std::int64_t>(1, micro / ranks()) != 0) continue;
      INFO("schedule " << static_cast<int>(schedule) << ", " << micro << " micro-batches, recomputes "
                       << plan.recomputes);
      auto pipelined = plan;
      pipelined.options.parallel = stages(ranks(), schedule);
      pipelined.micro_batches = micro;
      check_near(train(pipelined), expected);
    }
  }
}

}  // namespace

TEST_CASE("every schedule has the losses, norms and weights of one rank", "[pipeline]") {
  for (const bool recomputes : {false, true}) check_schedules({.recomputes = recomputes}, {1, 4, 12});
}

TEST_CASE("after fifty steps every schedule has the losses of one rank", "[.][fifty_steps]") {
  for (const bool recomputes : {false, true}) {
    for (const bool is_tied : {false, true})
      check_schedules({.steps = 50, .recomputes = recomputes, .is_tied = is_tied}, {1, 2, 3, 4, 5, 8, 11, 16});
  }
}

TEST_CASE("sums and counts, untied heads, accumulation and 16 bits are those of one rank", "[pipeline]") {
  const auto both = [](Plan plan, double tolerance = 1e-5) {
    const auto expected = course_of_one(plan);
    plan.options.parallel = stages(ranks());
    check_near(train(plan), expected, tolerance);
  };
  both({.counts = true});
  both({.is_tied = false});
  both({.dropout = 0.3});
  both({.recomputes = true, .dropout = 0.3});
  both({.options = {.gradient_accumulation_steps = 2}});
  both({.options = {.gradient_accumulation_steps = 2}, .counts = true});
  both({.options = {.mixed_precision = Precision::bf16}}, 2e-2);
  both({.options = {.mixed_precision = Precision::fp16}}, 2e-3);
}

TEST_CASE("replicas of a pipeline average their gradients, with ZeRO 1 as well", "[pipeline]") {
  if (ranks() != 4) return;
  const auto expected = course_of_one({.counts = true});
  check_near(train({.options = {.parallel = stages(2)}, .micro_batches = 3, .counts = true}), expected);
  check_near(train({.options = {.zero = {.stage = 1}, .parallel = stages(2)}, .micro_batches = 3}), course_of_one({}));
}

TEST_CASE("a pipeline's checkpoints resume on one rank, and those of one rank along a pipeline", "[pipeline]") {
  Accelerator outside;
  const test::Folder folder(outside, "pipeline_state");
  const auto whole = course_of_one({.steps = 6});
  auto pipelined = stages(ranks());
  train({.options = {.parallel = pipelined}, .steps = 3, .save = folder.path() / "stages"});
  auto rest = whole;
  rest.losses.erase(rest.losses.begin(), rest.losses.begin() + (rest.losses.empty() ? 0 : 3));
  rest.norms.erase(rest.norms.begin(), rest.norms.begin() + (rest.norms.empty() ? 0 : 3));
  check_near(course_of_one({.first = 3, .steps = 3, .load = folder.path() / "stages"}), rest);
  course_of_one({.steps = 3, .save = folder.path() / "one"});
  outside.wait_for_everyone();
  check_near(train({.options = {.parallel = pipelined}, .first = 3, .steps = 3, .load = folder.path() / "one"}), rest);
  pipelined.pipeline_schedule = PipelineSchedule::interleaved;
  check_near(train({.options = {.parallel = pipelined}, .first = 3, .steps = 3, .load = folder.path() / "stages"}),
             rest);
  if (ranks() != 4) return;
  const AcceleratorOptions sharded = {.zero = {.stage = 1}, .parallel = stages(2)};
  train({.options = sharded, .micro_batches = 2, .steps = 3, .save = folder.path() / "sharded"});
  check_near(course_of_one({.first = 3, .steps = 3, .load = folder.path() / "sharded"}), rest);
  check_near(train({.options = sharded, .micro_batches = 2, .first = 3, .steps = 3, .load = folder.path() / "stages"}),
             rest);
}

TEST_CASE("save_model() writes each stage's weights once", "[pipeline]") {
  Accelerator outside;
  const test::Folder folder(outside, "pipeline_model");
  const auto course = train({.options = {.parallel = stages(ranks())}, .model = folder.path()});
  Chain net(8);
  Accelerator accelerator;
  auto model = accelerator.prepare(net);
  accelerator.load_checkpoint_in_model(model, folder.path());
  if (accelerator.is_main_process()) CHECK(distance(accelerator.get_state_dict(model), course.weights) == 0);
}

TEST_CASE("a rank has memory for the parameters of its stages only", "[pipeline]") {
  Accelerator accelerator({.parallel = stages(ranks())});
  auto net = construct_deferred([] { return Chain(48, false, false); });
  auto model = accelerator.prepare(net);
  std::int64_t own = 0, all = net->head->weight.numel();  // counts as layers of the last stage do
  for (const auto& parameter : net->layers->parameters()) {
    all += parameter.numel();
    own += parallel::is_of_other_stage(parameter) ? 0 : parameter.numel();
  }
  CHECK(static_cast<double>(own) <= 1.05 * static_cast<double>(all) / ranks());
  {
    const auto whole = accelerator.summon_full_parameters(model);
    for (const auto& parameter : net->parameters()) CHECK(same_everywhere(parameter));
  }
  if (ranks() > 1)
    CHECK(parallel::is_of_other_stage(accelerator.is_main_process() ? net->head->weight : net->embed->weight));
}

TEST_CASE("norms of batches are saved by the stage that has them", "[pipeline]") {
  // one micro-batch: its statistics are those of the whole batch
  Plan plan{.micro_batches = 1, .has_batch_statistics = true};
  const auto expected = course_of_one(plan);
  plan.options.parallel = stages(ranks());
  check_near(train(plan), expected);
}

TEST_CASE("backward in halves runs recomputed layers once more, not twice", "[pipeline]") {
  Accelerator accelerator({.parallel = stages(ranks(), PipelineSchedule::zero_bubble)});
  Chain net(8, /*recomputes=*/true);
  auto model = accelerator.prepare(net);
  std::int64_t runs = 0;
  net->on_layer = [&](std::size_t) { ++runs; };
  const auto loss = [](auto& model, Words& part) {
    return at::cross_entropy_loss(model(part.ids).flatten(0, 1), part.targets.flatten());
  };
  accelerator.pipeline_step(model, batch_of(0), loss, {.micro_batches = 4});
  const auto all = mpi::all_gather(mpi::Communicator::world(), runs);
  CHECK(std::accumulate(all.begin(), all.end(), std::int64_t{0}) == 2 * 4 * 8);
}

TEST_CASE("times of a step are written beside the plan", "[pipeline]") {
  Accelerator accelerator({.parallel = stages(ranks(), PipelineSchedule::zero_bubble)});
  const test::Folder folder(accelerator, "pipeline_times");
  Chain net(8);
  auto model = accelerator.prepare(net);
  const auto loss = [](auto& model, Words& part) {
    return at::cross_entropy_loss(model(part.ids).flatten(0, 1), part.targets.flatten());
  };
  const auto file = folder.path() / "times.jsonl";
  accelerator.pipeline_step(model, batch_of(0), loss, {.micro_batches = 4, .times = file});
  const int actions = ranks() > 1 ? 3 * 4 * ranks() : 2 * 4;  // one stage computes backward as a whole
  int planned = 0, measured = 0;
  std::ifstream rows(file);
  for (std::string row; std::getline(rows, row);) {
    planned += static_cast<int>(row.starts_with(R"({"times":"planned")"));
    measured += static_cast<int>(row.starts_with(R"({"times":"measured")"));
  }
  CHECK(planned == actions);
  CHECK(measured == actions);
  CHECK_THROWS_WITH(accelerator.pipeline_forward(
                        model, batch_of(1), [](auto& model, Words& part) { return model(part.ids); }, {.times = file}),
                    ContainsSubstring("times"));
}

TEST_CASE("pipeline_forward() gives all ranks the outputs of the last stage", "[pipeline]") {
  Accelerator accelerator({.parallel = stages(ranks())});
  set_seed(3);
  Chain net(8);
  net->eval();
  auto model = accelerator.prepare(net);
  const auto batch = batch_of(1);
  const auto outputs =
      accelerator.pipeline_forward(model, batch, [](auto& model, Words& part) { return model(part.ids); });
  CHECK(!outputs.requires_grad());
  CHECK(same_everywhere(outputs));
  const auto whole = accelerator.summon_full_parameters(model);
  const at::NoGradGuard no_grad;
  CHECK(at::allclose(outputs, model(batch.ids), 1e-5, 1e-6));
}

TEST_CASE("gradient_norms() has the parameters of all stages", "[pipeline]") {
  const auto norms = [](const AcceleratorOptions& options) {
    Accelerator accelerator(options);
    set_seed(4);
    Chain net(8);
    use_running_statistics(*net);
    auto model = accelerator.prepare(net);
    const auto loss = [](auto& model, Words& part) {
      return at::cross_entropy_loss(model(part.ids).flatten(0, 1), part.targets.flatten());
    };
    accelerator.pipeline_step(model, batch_of(2), loss);
    return gradient_norms(accelerator, model).norms;
  };
  const auto found = norms({.parallel = stages(ranks())});
  const test::FirstRanks first(1);
  if (first.is_in()) CHECK(at::allclose(found, norms({.communicator = first.handle()}), 1e-4, 1e-7));
}

TEST_CASE("pipeline() takes the layers of a Sequential, and functions of several tensors", "[pipeline]") {
  const auto losses = [](const AcceleratorOptions& options, bool is_sequential) {
    Accelerator accelerator(options);
    set_seed(9);
    torch::nn::Linear first(6, 4), second(4, 4), third(4, 1);
    auto net = is_sequential ? pipeline(torch::nn::Sequential(first, torch::nn::Linear(4, 4), second, third))
                             : pipeline({stage<torch::nn::Linear>(first,
                                                                  [](auto& layer, const auto& in) {
                                                                    const auto x = layer(in.at(0));
                                                                    return std::vector{x, at::tanh(x)};
                                                                  }),
                                         stage([](const std::vector<at::Tensor>& in) {
                                           return std::vector{in[1], in[0]};
                                         }),
                                         stage<torch::nn::Linear>(second,
                                                                  [](auto& layer, const auto& in) {
                                                                    return std::vector{layer(in.at(0)) + in.at(1)};
                                                                  }),
                                         stage(third)});
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    std::vector<double> losses;
    for (int step = 0; step < 5; ++step) {
      const auto x = at::arange(36, at::kFloat).view({6, 6}) / 36 + 0.1 * step;
      losses.push_back(
          accelerator
              .pipeline_step(model, std::pair(x, x.sum(1, true)),
                             [](auto& model, auto& part) { return at::mse_loss(model(part.first), part.second); })
              .template item<double>());
      optimizer.step();
      optimizer.zero_grad();
    }
    return losses;
  };
  for (const bool is_sequential : {true, false}) {
    const auto found = losses({.parallel = stages(ranks())}, is_sequential);
    const test::FirstRanks first(1);
    if (!first.is_in()) continue;
    const auto expected = losses({.communicator = first.handle()}, is_sequential);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(found[i] - expected[i]) < 1e-5);
  }
}

TEST_CASE("if a stage throws, forward or backward, all do, and the next step is right", "[pipeline]") {
  for (const bool in_backward : {false, true}) {
    for (int failing = 0; failing < ranks(); ++failing) {
      Accelerator accelerator({.parallel = stages(ranks())});
      set_seed(11);
      Chain net(8, /*recomputes=*/in_backward);
      use_running_statistics(*net);
      auto model = accelerator.prepare(net);
      const auto mean = [](auto& model, Words& part) {
        return at::cross_entropy_loss(model(part.ids).flatten(0, 1), part.targets.flatten());
      };
      int calls = 0;
      // with recomputation, layers run again in backward
      net->on_layer = [&](std::size_t) {
        const bool is_backward = parallel::current_graph_task() != parallel::no_graph_task;
        if (accelerator.process_index() == failing && is_backward == in_backward && ++calls == 3)
          throw std::runtime_error("a broken layer");
      };
      INFO("rank " << failing << ", backward " << in_backward);
      const auto step = [&] { return accelerator.pipeline_step(model, batch_of(0), mean, {.micro_batches = 12}); };
      CHECK_THROWS_WITH(step(), ContainsSubstring("a broken layer"));
      net->on_layer = nullptr;
      model.zero_grad();
      const auto loss = step().item<double>();
      const auto expected = course_of_one({.steps = 1});
      if (!expected.losses.empty()) CHECK(std::abs(loss - expected.losses.front()) < 1e-5);
    }
  }
}

TEST_CASE("a batch with fewer rows than micro-batches is cut into as many as the schedule can order", "[pipeline]") {
  const auto loss_of_rows = [](const AcceleratorOptions& options, std::int64_t count) {
    Accelerator accelerator(options);
    set_seed(11);
    Chain net(8);
    use_running_statistics(*net);
    auto model = accelerator.prepare(net);
    const auto whole = batch_of(0);
    const Words batch{whole.ids.narrow(0, 0, count), whole.targets.narrow(0, 0, count)};
    const auto mean = [](auto& model, Words& part) {
      return at::cross_entropy_loss(model(part.ids).flatten(0, 1), part.targets.flatten());
    };
    return accelerator.pipeline_step(model, batch, mean, {.micro_batches = 12}).item<double>();
  };
  for (const std::int64_t count : {1, 2, 5, 7}) {
    const auto found = loss_of_rows({.parallel = stages(ranks(), PipelineSchedule::interleaved)}, count);
    const test::FirstRanks first(1);
    if (first.is_in()) CHECK(std::abs(found - loss_of_rows({.communicator = first.handle()}, count)) < 1e-5);
  }
}

TEST_CASE("pipeline_step() refuses ZeRO's stages that shard gradients", "[pipeline]") {
  Accelerator accelerator({.zero = {.stage = 2}});
  Chain net(8);
  auto model = accelerator.prepare(net);
  const auto mean = [](auto& model, Words& part) { return model(part.ids).mean(); };
  CHECK_THROWS_WITH(accelerator.pipeline_step(model, batch_of(0), mean), ContainsSubstring("zero.stage 2 or 3"));
}

TEST_CASE("what a pipeline cannot do is an error on all ranks", "[pipeline]") {
  Accelerator accelerator({.parallel = stages(ranks())});
  const auto mean = [](auto& model, Words& part) {
    return at::cross_entropy_loss(model(part.ids).flatten(0, 1), part.targets.flatten());
  };
  Chain net(8);
  auto model = accelerator.prepare(net);
  SECTION("a batch whose tensors have different rows") {
    auto batch = batch_of(0);
    batch.targets = batch.targets.narrow(0, 0, 3);
    CHECK_THROWS_WITH(accelerator.pipeline_step(model, batch, mean), ContainsSubstring("has the shape [3, 5]"));
  }
  SECTION("no micro-batches") {
    CHECK_THROWS_WITH(accelerator.pipeline_step(model, batch_of(0), mean, {.micro_batches = 0}),
                      ContainsSubstring("micro_batches is 0"));
  }
  SECTION("a loss of several numbers") {
    const auto each = [](auto& model, Words& part) { return model(part.ids); };
    CHECK_THROWS_WITH(accelerator.pipeline_step(model, batch_of(0), each), ContainsSubstring("no loss of one number"));
  }
  SECTION("a function that does not call the model") {
    if (ranks() == 1) return;
    const auto none = [](auto&, Words& part) { return part.ids.sum().to(at::kFloat).requires_grad_(); };
    CHECK_THROWS_WITH(accelerator.pipeline_step(model, batch_of(0), none),
                      ContainsSubstring("came to its end in stage 0"));
  }
  SECTION("the model twice") {
    if (ranks() == 1) return;
    const auto twice = [](auto& model, Words& part) { return (model(part.ids) + model(part.ids)).sum(); };
    CHECK_THROWS_WITH(accelerator.pipeline_step(model, batch_of(0), twice), ContainsSubstring("were run twice"));
  }
  SECTION("the model outside of a pipeline") {
    if (ranks() == 1) return;
    CHECK_THROWS_WITH(model(batch_of(0).ids), ContainsSubstring("was called outside of a pipeline"));
  }
  SECTION("models without named layers, or with too few") {
    if (ranks() == 1) return;
    test::Net plain;
    CHECK_THROWS_WITH(accelerator.prepare(plain), ContainsSubstring("names no layers"));
    Chain small(1);
    CHECK_THROWS_WITH(accelerator.prepare(small), ContainsSubstring("A model of 1 layer was to be cut"));
  }
}

TEST_CASE("settings that do not go with a pipeline are errors", "[pipeline]") {
  if (ranks() == 1) return;
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 2}, .parallel = stages(ranks())}),
                    ContainsSubstring("parallel.pipeline is") && ContainsSubstring("zero.stage is 2"));
  CHECK_THROWS_WITH(Accelerator({.parallel = stages(ranks()), .reproducible = true}),
                    ContainsSubstring("reproducible = true with parallel.pipeline"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.experts = 2, .pipeline = ranks()}}),
                    ContainsSubstring("parallel.experts is 2"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.pipeline = ranks(), .stages_per_rank = 2}}),
                    ContainsSubstring("pipeline_schedule is not interleaved"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.pipeline = ranks(), .micro_batches = -1}}),
                    ContainsSubstring("parallel.micro_batches is -1"));
}
