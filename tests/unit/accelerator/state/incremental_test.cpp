// Checkpoints whose frozen weights are written once.
#include <fstream>

#include "support/catch.hpp"
#include "unit/accelerator/first_ranks.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::FirstRanks;
using test::Folder;
namespace fs = std::filesystem;

namespace {

constexpr auto frozen = "frozen.h5";
constexpr std::int64_t width = 512;

/// A large frozen base and a small layer that is trained.
struct BaseImpl : torch::nn::Module {
  BaseImpl() {
    at::manual_seed(4);
    base = register_module("base", torch::nn::Linear(width, width));
    adapter = register_module("adapter", torch::nn::Linear(width, 4));
    for (auto& parameter : base->parameters()) parameter.requires_grad_(false);
  }
  at::Tensor forward(const at::Tensor& x) { return adapter(base(x)); }
  torch::nn::Linear base{nullptr};
  torch::nn::Linear adapter{nullptr};
};
TORCH_MODULE(Base);

AcceleratorOptions options_of(const fs::path& folder, int stage = 0) {
  AcceleratorOptions options;
  options.zero.stage = stage;
  options.project = {.dir = folder, .automatic_checkpoint_naming = true};
  options.checkpoint.incremental = true;
  return options;
}

struct IncrementalRun {
  explicit IncrementalRun(const AcceleratorOptions& options) : accelerator(options) {}

  fs::path train_and_save(int steps = 1) {
    for (int i = 0; i < steps; ++i) {
      accelerator.backward(model(at::ones({2, width})).square().mean());
      optimizer.step();
      optimizer.zero_grad();
    }
    auto folder = accelerator.save_state();
    accelerator.wait_for_checkpoint();
    accelerator.wait_for_everyone();
    return folder;
  }
  /// All weights, as rank 0 gets them.
  std::vector<at::Tensor> weights() {
    std::vector<at::Tensor> all;
    const auto state = accelerator.get_state_dict(model);
    for (const auto& [name, value] : state.values()) all.push_back(std::get<at::Tensor>(value).clone());
    return all;
  }

  Accelerator accelerator;
  Base net;
  torch::optim::AdamW plain{net->adapter->parameters(), torch::optim::AdamWOptions(1e-2)};
  Model<Base> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(plain);
};

bool are_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return at::equal(x, y); });
}

}  // namespace

TEST_CASE("frozen weights are written once, also when older checkpoints are removed") {
  const State state;
  const Folder folder(state, "incremental");
  for (const bool is_asynchronous : {false, true}) {
    auto options = options_of(folder.path() / (is_asynchronous ? "asynchronous" : "plain"));
    options.checkpoint.asynchronous = is_asynchronous;
    options.project.total_limit = 2;
    IncrementalRun run(options);
    const auto first = run.train_and_save();
    const auto second = run.train_and_save();
    CHECK(fs::equivalent(first / frozen, second / frozen));
    CHECK_FALSE(fs::equivalent(first / "state.h5", second / "state.h5"));
    CHECK(fs::file_size(second / frozen) > sizeof(float) * width * width);
    CHECK(fs::file_size(second / "state.h5") < sizeof(float) * width * width);
    run.train_and_save();
    const auto last = run.train_and_save();
    CHECK_FALSE(fs::exists(first));
    const auto expected = run.weights();
    run.train_and_save();
    run.accelerator.load_state(last);
    CHECK(are_equal(run.weights(), expected));
  }
}

TEST_CASE("a run that resumes on other ranks, or at another stage of ZeRO, shares what the one before has written") {
  const State state;
  const Folder folder(state, "incremental");
  const int fewer = std::max(1, static_cast<int>(state.num_processes()) - 1);
  for (const auto& [from, to] : {std::pair(0, 0), std::pair(0, 3), std::pair(3, 0), std::pair(2, 1)}) {
    const auto project = folder.path() / (std::to_string(from) + std::to_string(to));
    std::vector<at::Tensor> expected;
    fs::path first;
    {
      IncrementalRun run(options_of(project, from));
      first = run.train_and_save(2);
      expected = run.weights();
    }
    {
      const FirstRanks some(fewer);
      if (some.is_in()) {
        auto options = options_of(project, to);
        options.communicator = some.handle();
        IncrementalRun run(options);
        run.accelerator.load_state();
        CHECK(are_equal(run.weights(), expected));
        CHECK(fs::equivalent(first / frozen, run.train_and_save() / frozen));
        expected = run.weights();
      }
    }
    IncrementalRun run(options_of(project, from));
    run.accelerator.load_state();
    if (state.is_main_process())
      CHECK(are_equal(run.weights(), expected));
    else
      run.weights();
  }
}

TEST_CASE("frozen weights of models that are divided or offloaded are written once, and resume undivided") {
  const State state;
  if (state.num_processes() % 2 != 0) return;
  const Folder folder(state, "incremental");
  for (const bool is_divided : {true, false}) {
    auto options = options_of(folder.path() / (is_divided ? "divided" : "offloaded"));
    if (is_divided) {
      options.parallel = {.tensor = 2, .plan = {{"base", TensorDivision::columns}, {"adapter", TensorDivision::rows}}};
    } else {
      options.zero = {.stage = 3, .offload_parameters = folder.path() / "parameters"};
    }
    std::vector<at::Tensor> expected;
    fs::path first;
    {
      IncrementalRun run(options);
      first = run.train_and_save();
      CHECK(fs::equivalent(first / frozen, run.train_and_save() / frozen));
      expected = run.weights();
    }
    IncrementalRun run(options_of(options.project.dir));
    run.accelerator.load_state();
    if (state.is_main_process()) {
      CHECK(are_equal(run.weights(), expected));
    } else {
      run.weights();
    }
    CHECK(fs::equivalent(first / frozen, run.train_and_save() / frozen));
  }
}

TEST_CASE("frozen weights of all stages of a pipeline are written once, and resume without stages") {
  const State state;
  if (state.num_processes() % 2 != 0) return;
  const Folder folder(state, "incremental");
  const auto make = [] {
    at::manual_seed(4);
    torch::nn::Sequential net;
    for (int i = 0; i < 8; ++i) net->push_back(torch::nn::Linear(64, 64));
    for (auto& parameter : net->parameters()) parameter.requires_grad_(parameter.dim() == 1);
    return net;
  };
  fs::path first;
  {
    auto options = options_of(folder.path());
    options.parallel.pipeline = static_cast<int>(state.num_processes());
    Accelerator accelerator(options);
    auto net = make();
    const auto model = accelerator.prepare(net);
    first = accelerator.save_state();
    CHECK(fs::equivalent(first / frozen, accelerator.save_state() / frozen));
  }
  Accelerator accelerator(options_of(folder.path()));
  auto net = make();
  const auto model = accelerator.prepare(net);
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : net->parameters()) parameter.zero_();
  }
  accelerator.load_state();
  CHECK(are_equal(net->parameters(), make()->parameters()));
  CHECK(fs::equivalent(first / frozen, accelerator.save_state() / frozen));
}

TEST_CASE("frozen weights to which the program writes are saved again, however it writes") {
  const State state;
  const Folder folder(state, "incremental");
  IncrementalRun run(options_of(folder.path()));
  const auto first = run.train_and_save();
  run.net->base->weight.data().data_ptr<float>()[width * width - 1] += 1;  // no version counter sees it
  const auto second = run.train_and_save();
  CHECK_FALSE(fs::equivalent(first / frozen, second / frozen));
  const auto expected = run.weights();
  run.net->base->weight.data().zero_();
  run.accelerator.load_state(second);
  CHECK(are_equal(run.weights(), expected));
  run.net->adapter->bias.requires_grad_(false);
  const auto third = run.train_and_save();
  CHECK_FALSE(fs::equivalent(second / frozen, third / frozen));  // one more tensor is frozen
  CHECK(fs::equivalent(third / frozen, run.train_and_save() / frozen));
}

TEST_CASE("frozen weights that are missing or damaged are an error that names the file, or the checkpoint is skipped") {
  const State state;
  const Folder folder(state, "incremental");
  IncrementalRun run(options_of(folder.path()));
  const auto first = run.train_and_save();
  run.net->base->bias.data().add_(1);
  const auto second = run.train_and_save();
  if (state.is_main_process()) {
    std::fstream file(second / frozen, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(fs::file_size(second / frozen)) - 100);
    file << std::string(50, 'U');
  }
  state.wait_for_everyone();
  CHECK_THROWS_WITH(run.accelerator.load_state(second), Catch::Contains(frozen) && Catch::Contains("is damaged"));
  const auto third = run.train_and_save();  // it does not share a file that is known to be damaged
  CHECK_FALSE(fs::equivalent(second / frozen, third / frozen));
  state.wait_for_everyone();
  if (state.is_main_process()) {
    fs::remove(third / frozen);
    fs::remove(second / frozen);
  }
  state.wait_for_everyone();
  CHECK_THROWS_WITH(run.accelerator.load_state(third), Catch::Contains(frozen));
  run.accelerator.load_state();
  CHECK(run.accelerator.save_state() != first);
}

TEST_CASE("incremental checkpoints and MPI-IO exclude each other") {
  AcceleratorOptions options;
  options.checkpoint = {.writer = CheckpointWriter::mpio, .incremental = true};
  CHECK_THROWS_WITH(Accelerator(options), Catch::Contains("checkpoint.incremental with CheckpointWriter::mpio"));
}
