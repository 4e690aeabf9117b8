#include <mpi.h>
#include <torch/nn/modules/batchnorm.h>

#include "checkpoint/manifest.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

namespace {

struct Average {
  double value = 0;
  at::Tensor histogram = at::zeros({3});
  void save(StateWriter& out) const {
    out.put("value", value);
    out.put("histogram", histogram);
  }
  void load(const StateReader& in) {
    value = in.get<double>("value");
    histogram = in.get<at::Tensor>("histogram");
  }
};

struct Outcome {
  std::vector<double> losses;
  Net net{nullptr};
  Average average;
};

// Trains a net with dropout for `steps` steps, in shuffled order, with a schedule. Saves after `save_at` steps, or
// resumes from there.
Outcome run_training(const std::filesystem::path& folder, int steps, int save_at, bool resume) {
  Accelerator accelerator({.project = {.dir = folder}});
  set_seed(resume ? 99 : 7, {.device_specific = true});
  Outcome outcome{.losses = {}, .net = Net(0.3), .average = {}};
  torch::optim::AdamW adamw(outcome.net->parameters(), 1e-2);
  auto [model, optimizer, loader, schedule] =
      accelerator.prepare(outcome.net, adamw, data_loader(Rows{21}, {.batch_size = 2, .shuffle = true}),
                          cosine_warmup(adamw, {.warmup_steps = 3, .total_steps = 200}));
  accelerator.register_for_checkpointing("average", outcome.average);
  if (resume) accelerator.load_state();
  int step = resume ? save_at : 0;
  while (step < steps) {
    for (auto& batch : loader) {
      auto loss = at::mse_loss(model(batch.data), batch.target);
      accelerator.backward(loss);
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      outcome.losses.push_back(loss.template item<double>());
      outcome.average.value = 0.9 * outcome.average.value + 0.1 * outcome.losses.back();
      outcome.average.histogram.add_(1);
      if (++step == save_at && !resume) accelerator.save_state();
      if (step == steps) break;
    }
  }
  return outcome;
}

}  // namespace

TEST_CASE("a resumed run equals an uninterrupted one bit for bit, from any step") {
  test::Folder folder(State(), "resume");
  for (const int save_at : {1, 3, 5, 11, 13}) {
    const auto whole = run_training(folder.path(), 16, save_at, false);
    const auto resumed = run_training(folder.path(), 16, save_at, true);
    INFO("saved after step " << save_at);
    CHECK(resumed.losses == std::vector<double>(whole.losses.begin() + save_at, whole.losses.end()));
    CHECK(test::same_parameters(*whole.net, *resumed.net));
    CHECK(at::equal(whole.net->named_buffers()["calls"], resumed.net->named_buffers()["calls"]));
    CHECK(resumed.average.value == whole.average.value);
    CHECK(at::equal(resumed.average.histogram, whole.average.histogram));
  }
}

TEST_CASE("a checkpoint of another model, or of other objects, is refused before anything changes") {
  test::Folder folder(State(), "mismatch");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  {
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    accelerator.save_state();
    accelerator.free_memory();
  }
  torch::nn::Linear other(5, 5);
  torch::optim::SGD other_sgd(other->parameters(), 0.1);
  {
    auto model = accelerator.prepare(other);
    const auto before = other->weight.detach().clone();
    CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring("holds 1 optimizers, prepared are 0"));
    auto optimizer = accelerator.prepare(other_sgd);
    CHECK_THROWS_WITH(accelerator.load_state(),
                      ContainsSubstring("models/0/hidden.weight") && ContainsSubstring("models/0/weight"));
    CHECK(at::equal(other->weight, before));
    accelerator.free_memory();
  }
  Average average;
  accelerator.register_for_checkpointing("average", average);
  CHECK_THROWS_WITH(accelerator.register_for_checkpointing("average", average),
                    ContainsSubstring("registered under the name 'average'"));
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring("holds nothing for the registered object 'average'"));
}

TEST_CASE("all mismatches are listed in one error") {
  test::Folder folder(State(), "all_mismatches");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  {
    auto [model, optimizer, loader] = accelerator.prepare(net, sgd, data_loader(Rows{4}));
    accelerator.save_state();
    accelerator.free_memory();
  }
  torch::nn::Linear other(5, 5);
  auto model = accelerator.prepare(other);
  Average average;
  accelerator.register_for_checkpointing("average", average);
  CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring("1 optimizers, prepared are 0") &&
                                                  ContainsSubstring("1 loaders, prepared are 0") &&
                                                  ContainsSubstring("missing 'models/0/weight'") &&
                                                  ContainsSubstring("unexpected 'models/0/hidden.weight'") &&
                                                  ContainsSubstring("nothing for the registered object 'average'"));
}

namespace {

/// Checks that the checkpoint does not match these objects: loading throws an error with `text` and changes nothing.
template <typename Optimizer, typename Schedule>
void check_refused(const std::filesystem::path& folder, Net& net, Optimizer& own, Schedule own_schedule,
                   std::int64_t samples, const std::string& text) {
  INFO(text);
  for (auto& parameter : net->parameters()) parameter.detach().fill_(0.5);
  Accelerator accelerator({.project = {.dir = folder}});
  auto [model, optimizer, schedule, loader] =
      accelerator.prepare(net, own, own_schedule, data_loader(Rows{samples}, {.batch_size = 2}));
  const auto rate = schedule.last_lr();
  CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring(text));
  for (const auto& parameter : net->parameters()) CHECK(parameter.eq(0.5).all().template item<bool>());
  CHECK(own.state().empty());
  CHECK(schedule.last_lr() == rate);
  CHECK(loader.position() == 0);
}

}  // namespace

TEST_CASE("mismatched optimizers, schedules and loaders are reported before models and moments are changed") {
  test::Folder folder(State(), "other_objects");
  Net net;
  {
    Accelerator accelerator({.project = {.dir = folder.path()}});
    torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    auto [model, optimizer, schedule, loader] =
        accelerator.prepare(net, sgd, linear_warmup(sgd, {.warmup_steps = 3, .total_steps = 200}),
                            data_loader(Rows{40}, {.batch_size = 2}));
    for (auto& batch : loader) {
      accelerator.backward(model(batch.data).sum());
      optimizer.step();
      schedule.step();
      break;
    }
    accelerator.save_state();
  }
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.2).momentum(0.9));
  torch::optim::AdamW adamw(net->parameters(), 0.2);
  const auto warmup = [](auto& own) { return linear_warmup(own, {.warmup_steps = 3, .total_steps = 200}); };
  check_refused(folder.path(), net, sgd, warmup(sgd), 39, "position is");
  check_refused(folder.path(), net, sgd, ReduceOnPlateau(sgd, {}), 40, "a schedule of another kind");
  check_refused(folder.path(), net, adamw, warmup(adamw), 40, "optimizers/0");
}

TEST_CASE("a checkpoint records the number of updates and the program's metadata") {
  test::Folder folder(State(), "facts");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(model(at::ones({1, 3})).sum());
    optimizer.step();
  };
  for (int i = 0; i < 3; ++i) step();
  const auto saved = accelerator.save_state({}, {.metadata = {{"loss", "0.5"}, {"who", "\u00e4"}}});
  const auto manifest = checkpoint::read_manifest(saved);
  CHECK(manifest.updates == 3);
  CHECK(manifest.mesh == std::map<std::string, std::int64_t>{{"data", accelerator.num_processes()}});
  CHECK(manifest.metadata == std::map<std::string, std::string>{{"loss", "0.5"}, {"who", "\u00e4"}});
  for (int i = 0; i < 5; ++i) step();
  accelerator.load_state();
  step();
  CHECK(checkpoint::read_manifest(accelerator.save_state()).updates == 4);
  CHECK_THROWS_WITH(accelerator.save_state({}, {.metadata = {{"loss", "\xff"}}}), ContainsSubstring("'loss'"));
  accelerator.wait_for_everyone();
}

TEST_CASE("a run resumes on another number of ranks with the same weights") {
  const State world;
  test::Folder folder(world, "elastic");
  Net net;
  {
    Accelerator accelerator({.project = {.dir = folder.path()}});
    auto model = accelerator.prepare(net);
    accelerator.save_state();
  }
  const auto weight = net->hidden->weight.detach().clone();
  {
    const at::NoGradGuard no_grad;
    net->hidden->weight.zero_();
  }
  // Each rank loads independently.
  Accelerator accelerator({.project = {.dir = folder.path()}, .communicator = MPI_Comm_c2f(MPI_COMM_SELF)});
  auto model = accelerator.prepare(net);
  accelerator.load_state();
  CHECK(at::equal(net->hidden->weight, weight));
  world.wait_for_everyone();
}

TEST_CASE("where ranks have buffers of their own, files hold those of rank 0") {
  Accelerator accelerator({.ddp = {.broadcast_buffers = false}});
  const test::Folder folder(accelerator, "own_buffers");
  const double rank = accelerator.process_index();
  torch::nn::BatchNorm1d norm(torch::nn::BatchNorm1dOptions(300));
  auto model = accelerator.prepare(norm);
  accelerator.backward(model(at::rand({4, 300}) * (rank + 1) + rank).square().sum());
  const auto mean = norm->running_mean.clone();
  const auto mean_of_first = accelerator.gather(mean.unsqueeze(0))[0].clone();
  const auto variance_of_first = accelerator.gather(norm->running_var.unsqueeze(0))[0].clone();
  accelerator.save_state(folder.path() / "state");
  accelerator.wait_for_checkpoint();
  accelerator.save_model(model, folder.path() / "safetensors");
  accelerator.save_model(model, folder.path() / "pickles", {.max_shard_size = "1KB", .safe_serialization = false});
  CHECK(at::equal(norm->running_mean, mean));  // each rank keeps its own
  const auto check_loaded = [&](const auto& load) {
    norm->running_mean.zero_();
    norm->running_var.zero_();
    load();
    CHECK(at::equal(norm->running_mean, mean_of_first));
    CHECK(at::equal(norm->running_var, variance_of_first));
  };
  check_loaded([&] { accelerator.load_state(folder.path() / "state"); });
  for (const auto* name : {"safetensors", "pickles"})
    check_loaded([&] { accelerator.load_checkpoint_in_model(model, folder.path() / name); });
}
