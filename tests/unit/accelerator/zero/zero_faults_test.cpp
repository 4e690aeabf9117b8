// A disk error of one rank while it offloads is an error on all ranks, with its reason, and leaves the module whole.
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"
#include "unit/checkpoint/file_limit.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t width = 128;
constexpr int layers = 40;  // 2.6 MB
constexpr rlim_t small_disk_bytes = 1'500'000;

torch::nn::Sequential make_layers() {
  at::manual_seed(3);
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i) net->push_back(torch::nn::Linear(width, width));
  return net;
}

/// The error that `act` throws while the last rank's files are limited to `bytes`; empty if it throws none.
template <typename Act>
std::string problem_on_small_disk(const State& state, rlim_t bytes, const Act& act) {
  std::optional<testing::FileLimit> limit;
  if (state.is_last_process()) limit.emplace(bytes);
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

/// Whether the parameters are equal to `before`, in memory that no other rank writes to. @collective
bool is_whole(const torch::nn::Module& net, const std::vector<at::Tensor>& before, const State& state) {
  if (!test::are_equal(test::copies_of(net), before)) return false;
  state.wait_for_everyone();
  const at::NoGradGuard no_grad;
  for (const auto& parameter : net.parameters()) parameter.fill_(state.process_index());
  state.wait_for_everyone();
  const auto after = net.parameters();
  const bool own = std::all_of(after.begin(), after.end(), [&](const at::Tensor& parameter) {
    return at::equal(parameter, at::full_like(parameter, state.process_index()));
  });
  for (std::size_t i = 0; i < after.size(); ++i) after[i].copy_(before[i]);
  return own;
}

/// A path for a folder, which a file occupies on the last rank.
class HalfFolder {
 public:
  explicit HalfFolder(const State& state, const std::filesystem::path& within)
      : path_(within / (state.is_last_process() ? "taken" : "free")) {
    if (state.is_last_process()) {
      std::filesystem::create_directories(within);
      std::ofstream(path_) << "a file";
    }
    state.wait_for_everyone();
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("without space for parameters on one rank's disk all ranks throw, and the module can be prepared again") {
  const State state;
  const test::Folder folder(state, "zero_faults_parameters");
  auto net = make_layers();
  const auto before = test::copies_of(*net);
  {
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 0.1}, .zero = {.stage = 3, .offload_parameters = folder.path()}});
    const auto problem = problem_on_small_disk(state, small_disk_bytes, [&] { accelerator.prepare(net); });
    // On one node the first rank reserves the space for all, and each writes its own part.
    const auto* failed = accelerator.num_processes() == 1 ? "reserve" : "write";
    CHECK_THAT(problem, ContainsSubstring(failed) && ContainsSubstring(folder.path().string()));
    accelerator.wait_for_everyone();
  }
  CHECK(is_whole(*net, before, state));
  CHECK(std::filesystem::is_empty(folder.path()));
  Accelerator accelerator({.zero = {.stage = 3, .offload_parameters = folder.path()}});
  auto model = accelerator.prepare(net);
  CHECK(test::are_equal(test::copies_of(*net), before));
  accelerator.wait_for_everyone();
}

TEST_CASE("if one rank cannot create its files for fp32 copies and gradients, all ranks throw") {
  const State state;
  for (const auto type : {at::kBFloat16, at::kFloat}) {
    const test::Folder folder(state, "zero_faults_copies");
    const HalfFolder half(state, folder.path());
    auto net = make_layers();
    net->to(type);
    const auto before = test::copies_of(*net);
    {
      Accelerator accelerator({.zero = {.stage = 2, .offload_optimizer = half.path()}});
      CHECK_THROWS_WITH(accelerator.prepare(net), ContainsSubstring("create the folder") && ContainsSubstring("taken"));
      accelerator.wait_for_everyone();
    }
    CHECK(is_whole(*net, before, state));
    state.wait_for_everyone();
  }
}

TEST_CASE(
    "without space for moments on one rank's disk the step fails on all ranks, and succeeds once there is space") {
  const State state;
  const test::Folder folder(state, "zero_faults_moments");
  const auto train_layers = [&](const ZeroConfig& zero, bool fails) {
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 0.1}, .zero = zero});
    auto net = make_layers();
    torch::optim::AdamW adamw(net->parameters(), torch::optim::AdamWOptions(1e-2));
    auto [model, prepared] = accelerator.prepare(net, adamw);
    auto& optimizer = prepared;
    for (int step = 0; step < 3; ++step) {
      accelerator.backward(model(at::ones({2, width}) * (accelerator.process_index() + step)).square().mean());
      if (fails && step == 0) {
        const auto problem = problem_on_small_disk(state, 1 << 12, [&] { optimizer.step(); });
        CHECK_THAT(problem, ContainsSubstring("reserve"));
      }
      optimizer.step();
      optimizer.zero_grad();
    }
    auto parameters = test::copies_of(*net);
    accelerator.wait_for_everyone();
    return parameters;
  };
  const auto expected = train_layers({.stage = 1}, false);
  CHECK(test::are_equal(train_layers({.stage = 1, .offload_optimizer = folder.path()}, true), expected));
  CHECK(std::filesystem::is_empty(folder.path()));
}
