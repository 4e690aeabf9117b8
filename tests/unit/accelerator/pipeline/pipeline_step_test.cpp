// One step along a pipeline: what it runs, writes and refuses, and what happens if a stage fails.
#include <ATen/ops/mse_loss.h>

#include <chrono>
#include <fstream>
#include <hortator/parallel/local_sgd.hpp>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/text/text.hpp"
#include "parallel/data_parallel/backward_pass.hpp"
#include "unit/accelerator/pipeline/pipeline_course.hpp"

using namespace hortator;
using namespace hortator::test::pipelines;
using Catch::Matchers::ContainsSubstring;

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

TEST_CASE("while a stage waits for a message, it computes gradients of weights that come later", "[pipeline]") {
  Accelerator accelerator({.parallel = stages(ranks(), PipelineSchedule::zero_bubble)});
  if (ranks() == 1) return;
  const test::Folder folder(accelerator, "pipeline_waits");
  Chain net(8);
  auto model = accelerator.prepare(net);
  const bool is_slow = accelerator.process_index() == 0;
  net->on_layer = [&](std::size_t) {
    if (is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  const auto loss = [](auto& model, Words& part) {
    return at::cross_entropy_loss(model(part.ids).flatten(0, 1), part.targets.flatten());
  };
  const auto file = folder.path() / "times.jsonl";
  accelerator.pipeline_step(model, batch_of(0), loss, {.micro_batches = 4, .times = file});
  if (!accelerator.is_last_process()) return;
  std::string order;  // of the last rank, which plans to put off as many as there are ranks before it
  std::ifstream rows(file);
  const auto of_last = text::concat(R"("rank":)", accelerator.process_index(), R"(,"action":")");
  for (std::string row; std::getline(rows, row);) {
    const auto found = row.find(of_last);
    if (row.starts_with(R"({"times":"measured")") && found != std::string::npos) order += row[found + of_last.size()];
  }
  CHECK(order == "fiwfiwfiwfiw");
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
  CHECK(is_close(outputs, model(batch.ids)));
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
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(std::abs(found[i] - expected[i]) < 1e-5 * std::max(1., expected[i]));
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
  SECTION("sparse gradients, which one stage has") {
    Chain sparse(8, /*recomputes=*/false, /*is_tied=*/false);
    sparse->embed->options.sparse(true);
    auto prepared = accelerator.prepare(sparse);
    CHECK_THROWS_WITH(accelerator.pipeline_step(prepared, batch_of(0), mean), ContainsSubstring("sparse"));
    accelerator.wait_for_everyone();
  }
  SECTION("models with too few layers or parts") {
    if (ranks() == 1) return;
    torch::nn::Linear plain(2, 2);
    CHECK_THROWS_WITH(accelerator.prepare(plain), ContainsSubstring("A model of 0 layers was to be cut"));
    Chain small(1);
    CHECK_THROWS_WITH(accelerator.prepare(small), ContainsSubstring("A model of 1 layer was to be cut"));
  }
}

TEST_CASE("settings that do not go with a pipeline are errors", "[pipeline]") {
  if (ranks() == 1) return;
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 2}, .parallel = stages(ranks())}),
                    ContainsSubstring("parallel.pipeline is") && ContainsSubstring("zero.stage is 2"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.pipeline = ranks(), .micro_batches = 4}, .reproducible = true}),
                    ContainsSubstring("reproducible = true with parallel.micro_batches"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.experts = 2, .pipeline = ranks()}}),
                    ContainsSubstring("parallel.experts is 2"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.pipeline = ranks(), .stages_per_rank = 2}}),
                    ContainsSubstring("pipeline_schedule is not interleaved"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.pipeline = ranks(), .micro_batches = -1}}),
                    ContainsSubstring("parallel.micro_batches is -1"));
}
