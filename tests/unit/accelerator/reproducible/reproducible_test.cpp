// reproducible = true: one rank, two and four see bitwise the same losses and weights.
#include <mpi.h>
#include <torch/nn/modules/batchnorm.h>

#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

struct NormedImpl : torch::nn::Module {
  NormedImpl() {
    hidden = register_module("hidden", torch::nn::Linear(3, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    drop = register_module("drop", torch::nn::Dropout(0.3));
    out = register_module("out", torch::nn::Linear(16, 1));
  }
  at::Tensor forward(const at::Tensor& x) { return out(drop(at::relu(norm(hidden(x))))); }
  torch::nn::Linear hidden{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(Normed);

/// Rows with noise that is drawn at each access.
struct Noisy {
  std::int64_t count;
  std::size_t size() const { return static_cast<std::size_t>(count); }
  Example<> get(std::int64_t i) const {
    const auto row = at::arange(3, at::kFloat) * 0.1 * static_cast<double>(i % 17 + 1) + at::randn({3}) * 0.1;
    return {row, row.sum().sin().view({1})};
  }
};

struct Run {
  std::map<std::pair<std::int64_t, std::int64_t>, float> losses;  ///< by step and shard, this rank's
  std::vector<at::Tensor> state;
  float drawn_afterwards = 0;
};

struct Setting {
  int shards = 4;
  std::int64_t accumulate = 1;
  bool weighted = false;
  std::int64_t samples = 51;  // the last step is padded
  std::uint64_t seed = 11;
  int stage = 0;  // of ZeRO
};

// The usual training loop.
Run run_training(const Setting& setting, std::optional<int> communicator) {
  at::manual_seed(5);  // numbers drawn before the run is seeded do not matter
  Accelerator accelerator({.gradient_accumulation_steps = setting.accumulate,
                           .zero = {.stage = setting.stage},
                           .reproducible = true,
                           .virtual_shards = setting.shards,
                           .communicator = communicator});
  set_seed(setting.seed);
  Normed net;
  torch::optim::AdamW adamw(net->parameters(), 0.01);
  auto [model, optimizer, loader, test] =
      accelerator.prepare(net, adamw, data_loader(Noisy{setting.samples}, {.batch_size = 4, .shuffle = true}),
                          data_loader(Noisy{9}, {.batch_size = 2}));
  const int own = setting.shards / accelerator.num_processes();
  Run run;
  std::int64_t step = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    model.train();
    for (auto& batch : loader) {
      auto micro_step = accelerator.accumulate(model);
      const auto loss = at::mse_loss(model(batch.data), batch.target);
      if (setting.weighted) {
        accelerator.backward(loss * batch.data.size(0), static_cast<double>(batch.data.size(0)));
      } else {
        accelerator.backward(loss);
      }
      accelerator.clip_grad_norm_(model.parameters(), 0.5);  // does nothing before there are gradients
      optimizer.step();
      optimizer.zero_grad();
      run.losses[{step / own, accelerator.process_index() * own + step % own}] = loss.template item<float>();
      if (++step % 3 == 0) {  // in the middle of a step: evaluation on test data changes nothing
        const at::NoGradGuard no_grad;
        for (auto& one : test) at::randn({one.data.size(0)});
      }
    }
  }
  accelerator.free_memory();  // whole parameters
  for (const auto& parameter : net->parameters()) run.state.push_back(parameter.detach().clone());
  for (const auto& buffer : net->buffers()) run.state.push_back(buffer.clone());
  run.drawn_afterwards = at::randn({1}).item<float>();
  return run;
}

bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b[i])) return false;
  }
  return true;
}

int handle_of(MPI_Comm comm) { return static_cast<int>(MPI_Comm_c2f(comm)); }

}  // namespace

TEST_CASE("a loop without a prepared model has nothing to sum") {
  Accelerator accelerator({.reproducible = true});
  auto loader = accelerator.prepare(data_loader(Noisy{64}, {.batch_size = 2}));
  torch::nn::Linear net(3, 1);
  for (auto& batch : loader) {
    net->zero_grad();
    net(batch.data).sum().backward();
    CHECK_NOTHROW(accelerator.clip_grad_norm_(net->parameters(), 1.0));
  }
}

TEST_CASE("one rank and all ranks get bitwise the same losses and weights, at each stage of ZeRO") {
  const State state;
  const auto setting = GENERATE(Setting{}, Setting{.shards = 8, .samples = 70}, Setting{.accumulate = 2},
                                Setting{.accumulate = 3, .weighted = true}, Setting{.weighted = true});
  const auto single = run_training(setting, handle_of(MPI_COMM_SELF));
  for (const int stage : {0, 1, 2, 3}) {
    INFO("ZeRO stage " << stage);
    auto staged = setting;
    staged.stage = stage;
    const auto parallel = run_training(staged, {});
    for (const auto& [step_and_shard, loss] : parallel.losses) CHECK(single.losses.at(step_and_shard) == loss);
    CHECK(single.losses.size() == parallel.losses.size() * static_cast<std::size_t>(state.num_processes()));
    CHECK(equal(single.state, parallel.state));
    CHECK(single.drawn_afterwards == parallel.drawn_afterwards);
  }
}

TEST_CASE("matrix products on a device are made deterministic, unless the user has configured them") {
  for (const std::string workspace : {"", ":16:8"}) {
    if (workspace.empty()) {
      unsetenv("CUBLAS_WORKSPACE_CONFIG");
    } else {
      setenv("CUBLAS_WORKSPACE_CONFIG", workspace.c_str(), 1);
    }
    const Accelerator accelerator({.reproducible = true, .virtual_shards = 4});
    REQUIRE(std::getenv("CUBLAS_WORKSPACE_CONFIG") != nullptr);
    CHECK(std::getenv("CUBLAS_WORKSPACE_CONFIG") == (workspace.empty() ? ":4096:8" : workspace));
  }
  unsetenv("CUBLAS_WORKSPACE_CONFIG");
}

TEST_CASE(
    "the losses fall, and depend on the seed and the number of shards") {  // otherwise the test above proves little
  const auto four = run_training({.shards = 4, .samples = 200}, handle_of(MPI_COMM_SELF));
  const auto eight = run_training({.shards = 8, .samples = 200}, handle_of(MPI_COMM_SELF));
  CHECK_FALSE(equal(four.state, eight.state));
  // The random numbers of each batch depend on the seed that was set after the Accelerator was constructed.
  const auto other = run_training({.shards = 4, .samples = 200, .seed = 12}, handle_of(MPI_COMM_SELF));
  CHECK(other.drawn_afterwards != four.drawn_afterwards);
  std::vector<float> losses;
  for (const auto& [step_and_shard, loss] : four.losses) losses.push_back(loss);
  const auto middle = losses.begin() + static_cast<std::ptrdiff_t>(losses.size() / 2);
  CHECK(std::accumulate(middle, losses.end(), 0.0F) < std::accumulate(losses.begin(), middle, 0.0F));
}

TEST_CASE("metrics see each sample once") {
  for (const std::int64_t samples : {1, 7, 9, 16, 19}) {
    Accelerator accelerator({.reproducible = true, .virtual_shards = 4});
    auto loader = accelerator.prepare(data_loader(test::Rows{.count = samples}, {.batch_size = 2}));
    std::vector<at::Tensor> seen;
    for (auto& batch : loader) seen.push_back(accelerator.gather_for_metrics(batch.target));
    const auto sorted = std::get<0>(at::cat(seen).view({-1}).sort());
    CHECK(at::allclose(sorted, 0.3 * at::arange(1, samples + 1, at::kFloat)));
  }
}

TEST_CASE("numbers of shards that would change the sums are refused, and so are uneven batches") {
  CHECK_THROWS_AS(Accelerator({.reproducible = true, .virtual_shards = 0}), UsageError);
  CHECK_THROWS_AS(Accelerator({.data = {.even_batches = false}, .reproducible = true}), UsageError);
  const State state;
  if (state.num_processes() > 1)
    CHECK_THROWS_AS(Accelerator({.reproducible = true, .virtual_shards = state.num_processes() * 3}), UsageError);
}

TEST_CASE("a step in which a shard has no backward is refused on all ranks, and the next one is whole") {
  Accelerator accelerator({.reproducible = true, .virtual_shards = 4});
  Normed net;
  torch::optim::SGD sgd(net->parameters(), 0.01);
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, data_loader(Noisy{32}, {.batch_size = 4}));
  const int own = 4 / accelerator.num_processes();
  int batches = 0, refused = 0, updates = 0;
  for (auto& batch : loader) {
    const bool is_skipped = batches++ == own - 1 && accelerator.is_last_process();  // the last shard of the first step
    if (!is_skipped) accelerator.backward(at::mse_loss(model(batch.data), batch.target));
    try {
      optimizer.step();
      updates += accelerator.sync_gradients() ? 1 : 0;
    } catch (const UsageError& error) {
      CHECK_THAT(error.what(), ContainsSubstring("some of the 4 shards"));
      ++refused;
    }
    optimizer.zero_grad();
  }
  CHECK(refused == 1);
  CHECK(updates == 1);
}

TEST_CASE("parameters of a type that only some shards use are trained, on any number of ranks") {
  struct MixedImpl : torch::nn::Module {
    MixedImpl() {
      torch::manual_seed(3);
      all = register_module("all", torch::nn::Linear(3, 1));
      some = register_parameter("some", at::ones({3}, at::kDouble));
    }
    torch::nn::Linear all{nullptr};
    at::Tensor some;
  };
  const auto trained = [](std::optional<int> communicator) {
    Accelerator accelerator({.reproducible = true, .virtual_shards = 4, .communicator = communicator});
    const auto net = std::make_shared<MixedImpl>();
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto optimizer = accelerator.prepare(sgd);
    auto model = accelerator.prepare_model(net);
    auto loader = accelerator.prepare(data_loader(test::Rows{.count = 16}, {.batch_size = 2}));
    for (auto& batch : loader) {
      auto loss = net->all(batch.data).sum();
      if (batch.target.sum().template item<float>() > 1.5) loss = loss + (net->some * batch.data.to(at::kDouble)).sum();
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
    }
    return std::vector{net->all->weight.detach().clone(), net->some.detach().clone()};
  };
  const auto single = trained(handle_of(MPI_COMM_SELF)), parallel = trained({});
  CHECK(!at::equal(single[1], at::ones({3}, at::kDouble)));
  CHECK(equal(single, parallel));
}

TEST_CASE("a backward after the update of its step is refused") {
  Accelerator accelerator({.reproducible = true, .virtual_shards = 4});
  Normed net;
  torch::optim::SGD sgd(net->parameters(), 0.01);
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, data_loader(Noisy{16}, {.batch_size = 4}));
  for (auto& batch : loader) {
    accelerator.backward(at::mse_loss(model(batch.data), batch.target));
    if (!accelerator.sync_gradients()) continue;
    optimizer.step();
    CHECK_THROWS_AS(accelerator.backward(at::mse_loss(model(batch.data), batch.target)), UsageError);
  }
}
