#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;
using test::Rows;
using test::same_on_all_ranks;

namespace {

/// An average of a network's weights, and how often it was updated.
struct WeightAverage {
  explicit WeightAverage(const torch::nn::Module& net) {
    for (const auto& parameter : net.parameters()) average.push_back(parameter.detach().clone());
  }
  void update(const torch::nn::Module& net) {
    ++updates;
    const double decay = 1.0 / static_cast<double>(updates + 1);
    for (std::size_t i = 0; i < average.size(); ++i) average[i].lerp_(net.parameters()[i].detach(), decay);
  }
  void save(StateWriter& out) const {
    out.put("updates", updates);
    for (std::size_t i = 0; i < average.size(); ++i) out.put(std::to_string(i), average[i]);
  }
  void load(const StateReader& in) {
    updates = in.get<std::int64_t>("updates");
    for (std::size_t i = 0; i < average.size(); ++i) average[i].copy_(in.get<at::Tensor>(std::to_string(i)));
  }
  std::int64_t updates = 0;
  std::vector<at::Tensor> average;
};

/// A count of this rank's own.
struct BatchCount {
  void save(StateWriter& out) const { out.put("batches", batches); }
  void load(const StateReader& in) { batches = in.get<std::int64_t>("batches"); }
  std::int64_t batches = 0;
};

torch::nn::Sequential make_net() {
  return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 1));
}

void check_alike(Accelerator& accelerator, const torch::nn::Module& net) {
  for (const auto& parameter : net.parameters()) CHECK(same_on_all_ranks(accelerator, parameter));
  for (const auto& buffer : net.buffers()) CHECK(same_on_all_ranks(accelerator, buffer));
}

}  // namespace

TEST_CASE("ranks that run out of batches follow any collectives of the others, and end with the same model") {
  for (const bool first_ends_first : {true, false}) {
    Accelerator accelerator({.data = {.even_batches = false}, .ddp = {.bucket_cap_mb = 1e-9}});
    const int rank = accelerator.process_index();
    at::manual_seed(3);
    auto a = make_net();
    auto b = make_net();
    torch::optim::AdamW adam_a(a->parameters(), 1e-2);
    torch::optim::AdamW adam_b(b->parameters(), 1e-2);
    auto [first, second, optimizer_a, optimizer_b] = accelerator.prepare(a, b, adam_a, adam_b);
    for (int epoch = 0; epoch < 2; ++epoch) {
      {
        auto joined = accelerator.join_uneven_inputs({first, second});
        // From zero steps (in the first epoch, before buckets are planned) to several, in an unusual order.
        const int steps = 2 * (first_ends_first ? rank : accelerator.num_processes() - 1 - rank);
        for (int step = 0; step < steps; ++step) {
          const auto x = at::rand({4, 3}) + rank;
          accelerator.backward(first(x).sum() + first(2 * x).sum());
          optimizer_a.step();
          optimizer_a.zero_grad();
          {
            auto no_sync = accelerator.no_sync(first);
            accelerator.backward(second(first(x).expand({4, 3})).pow(2).sum());
          }
          optimizer_b.step();
          optimizer_b.zero_grad();
          optimizer_a.zero_grad();
        }
      }
      check_alike(accelerator, *a);
      check_alike(accelerator, *b);
    }
    // The optimizers agree, too: after another step of all ranks the models are still equal.
    accelerator.backward(first(at::rand({4, 3})).sum());
    optimizer_a.step();
    optimizer_a.zero_grad();
    check_alike(accelerator, *a);
  }
}

TEST_CASE("joined ranks count as zeros: the average is over all ranks") {
  Accelerator accelerator({.data = {.even_batches = false}});
  torch::nn::Linear net(torch::nn::LinearOptions(1, 1).bias(false));
  auto model = accelerator.prepare(net);
  const auto joined = accelerator.join_uneven_inputs({model});
  for (int step = 0; step <= accelerator.process_index(); ++step) {
    net->zero_grad();
    accelerator.backward(model(at::ones({1, 1})).sum());
    const double active = accelerator.num_processes() - step;
    CHECK(net->weight.grad().item<double>() == Approx(active / accelerator.num_processes()));
  }
}

TEST_CASE("join_uneven_inputs supports unused parameters and plain backward") {
  Accelerator accelerator({.data = {.even_batches = false}, .ddp = {.find_unused_parameters = true}});
  Net net;
  auto model = accelerator.prepare(net);
  {
    auto joined = accelerator.join_uneven_inputs({model});
    for (int step = 0; step <= accelerator.process_index(); ++step)
      model->hidden(at::ones({2, 3}) * (accelerator.process_index() + 1)).sum().backward();
    if (accelerator.process_index() > 0) CHECK_FALSE(net->out->weight.grad().defined());
  }
  check_alike(accelerator, *net);
}

TEST_CASE("a scope that fails within a loop leaves all loaders as they were") {
  Accelerator accelerator;
  if (accelerator.num_processes() == 1) return;  // nothing is overridden
  Net net;
  auto [model, first, second] =
      accelerator.prepare(net, data_loader(Rows{8}, {.batch_size = 1}), data_loader(Rows{8}, {.batch_size = 1}));
  for (auto& batch : second) {
    static_cast<void>(batch);
    CHECK_THROWS_AS(accelerator.join_uneven_inputs({model}, {.even_batches = false}), UsageError);
    break;
  }
  CHECK(first.even_batches());
  CHECK(second.even_batches());
}

TEST_CASE("even_batches is overridden for loaders within the scope, and decides whether ranks join") {
  Accelerator accelerator;
  const auto world = accelerator.num_processes();
  Net net;
  // One sample more than the ranks share evenly.
  auto [model, loader] = accelerator.prepare(net, data_loader(Rows{2L * world + 1}, {.batch_size = 1}));
  const auto steps = [&, &model = model, &loader = loader] {
    std::int64_t count = 0;
    for (auto& batch : loader) {
      accelerator.backward(model(batch.data).sum());
      ++count;
    }
    return count;
  };
  CHECK(steps() == 3);
  {
    auto joined = accelerator.join_uneven_inputs({model}, {.even_batches = false});
    CHECK(steps() == (accelerator.is_main_process() ? 3 : 2));
  }
  CHECK(steps() == 3);
  {
    auto joined = accelerator.join_uneven_inputs({model}, {.even_batches = true});
    CHECK(steps() == 3);
  }
  CHECK(loader.even_batches());
  try {
    auto joined = accelerator.join_uneven_inputs({model}, {.even_batches = false});
    throw std::runtime_error("the user's");
  } catch (const std::runtime_error&) {
    CHECK(loader.even_batches());
  }
}

TEST_CASE("ranks that call different collectives within join_uneven_inputs all throw") {
  Accelerator accelerator({.data = {.even_batches = false}});
  if (accelerator.num_processes() == 1) return;
  torch::nn::Linear a(3, 1);
  torch::nn::Linear b(3, 1);
  auto [first, second] = accelerator.prepare(a, b);
  const auto diverge = [&, &first = first, &second = second] {
    auto joined = accelerator.join_uneven_inputs({first, second});
    accelerator.backward((accelerator.is_main_process() ? first : second)(at::ones({1, 3})).sum());
  };
  CHECK_THROWS_WITH(diverge(), ContainsSubstring("Ranks within join_uneven_inputs run different collectives") &&
                                   ContainsSubstring("of model 0 and") && ContainsSubstring("of model 1"));
}

TEST_CASE("join_uneven_inputs takes models of this Accelerator only") {
  Accelerator accelerator;
  Accelerator other;
  Net net;
  auto model = other.prepare(net);
  CHECK_THROWS_WITH(accelerator.join_uneven_inputs({model}),
                    ContainsSubstring("that another Accelerator has prepared"));
}

TEST_CASE("after join_uneven_inputs all ranks continue with the schedules and objects of the last, and can save") {
  Accelerator accelerator({.data = {.even_batches = false}});
  const test::Folder folder(accelerator, "joined");
  const int world = accelerator.num_processes();
  at::manual_seed(5);
  Net net;
  torch::optim::AdamW adam(net->parameters(), 1e-2);
  Schedule decay(adam, [](std::int64_t step) { return 1.0 / static_cast<double>(step + 1); });
  WeightAverage average(*net);
  BatchCount count;
  accelerator.register_for_checkpointing("average", average);
  accelerator.register_for_checkpointing("count", count);
  auto [model, optimizer, schedule, loader] =
      accelerator.prepare(net, adam, decay, data_loader(Rows{50L * world + 1}, {.batch_size = 10}));
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto joined = accelerator.join_uneven_inputs({model});
    for (auto& batch : loader) {
      accelerator.backward((model(batch.data) - batch.target).square().mean());
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      average.update(*net);
      ++count.batches;
    }
  }
  CHECK(count.batches == (accelerator.is_main_process() ? 12 : 10));  // a count of the rank's own stays
  CHECK(average.updates == 12);
  CHECK(schedule.steps() == 12L * world);
  CHECK(same_on_all_ranks(accelerator, at::full({1}, schedule.last_lr(), at::kDouble)));
  for (const auto& one : average.average) CHECK(same_on_all_ranks(accelerator, one));
  accelerator.save_state(folder.path());

  accelerator.backward(model(at::ones({2, 3})).sum());
  optimizer.step();
  schedule.step();
  check_alike(accelerator, *net);
  CHECK(adam.param_groups()[0].options().get_lr() == Approx(1e-2 / (12.0 * world + world + 1)));
}

TEST_CASE("after join_uneven_inputs all ranks are in the same epoch and micro-step, wherever their loops ended") {
  Accelerator accelerator({.gradient_accumulation_steps = 4,
                           .gradient_accumulation = {.sync_with_dataloader = false},
                           .data = {.even_batches = false}});
  const int rank = accelerator.process_index();
  const int last = accelerator.num_processes() - 1;
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer, loader] =
      accelerator.prepare(net, sgd, data_loader(Rows{8L * accelerator.num_processes()}, {.batch_size = 1}));
  {
    const auto joined = accelerator.join_uneven_inputs({model});
    int steps = 0;
    for (auto& batch : loader) {
      const auto micro_step = accelerator.accumulate(model);
      accelerator.backward(model(batch.data).sum());
      optimizer.step();
      optimizer.zero_grad();
      if (rank < last && ++steps == 5) break;  // in the middle of a group
    }
  }
  CHECK(loader.epoch() == 1);
  std::vector<std::int64_t> synchronised;
  for (int step = 0; step < 4; ++step) {
    const auto micro_step = accelerator.accumulate(model);
    synchronised.push_back(accelerator.sync_gradients() ? 1 : 0);
  }
  CHECK(synchronised == std::vector<std::int64_t>{0, 0, 0, 1});
}

TEST_CASE("after join_uneven_inputs all ranks compare replicas in the same passes") {
  Accelerator accelerator({.data = {.even_batches = false}, .ddp = {.check_replicas_every = 2}});
  torch::nn::Linear net(3, 1);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(model(at::ones({2, 3})).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  };
  {
    const auto joined = accelerator.join_uneven_inputs({model});
    for (int i = 0; i <= accelerator.process_index(); ++i) step();
  }
  for (int i = 0; i < 4; ++i) step();
  CHECK(same_on_all_ranks(accelerator, net->weight));
  if (accelerator.num_processes() == 1) return;
  if (accelerator.is_last_process()) {
    const at::NoGradGuard no_grad;
    net->weight.add_(1);
  }
  const auto two_steps = [&] {
    step();
    step();
  };
  CHECK_THROWS_WITH(two_steps(), ContainsSubstring("The parameter weight of model 0 differs from the other ranks'"));
}

TEST_CASE("after join_uneven_inputs all ranks have the averaged weights of the last, and can save") {
  Accelerator accelerator({.data = {.even_batches = false}});
  const test::Folder folder(accelerator, "joined_ema");
  const int world = accelerator.num_processes();
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.05);
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, data_loader(Rows{2L * world + 1}, {.batch_size = 1}));
  Ema ema(accelerator, model, {.decay = 0.5});
  {
    const auto joined = accelerator.join_uneven_inputs({model});
    for (auto& batch : loader) {
      accelerator.backward((model(batch.data) - batch.target).square().mean());
      optimizer.step();
      optimizer.zero_grad();
      ema.update();
    }
  }
  CHECK(ema.updates() == 3);
  CHECK(ema.decay() == 0.5);
  {
    const auto averaged = ema.use();
    check_alike(accelerator, *net);
  }
  CHECK_NOTHROW(accelerator.save_state(folder.path()));
  accelerator.wait_for_checkpoint();
}
