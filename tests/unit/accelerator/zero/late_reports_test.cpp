// Log lines of a run, at its start and later: each appears once, printed by the rank in charge.
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "accelerator/training/training.hpp"
#include "core/environment/openmp.hpp"
#include "core/text/text.hpp"
#include "runtime/world.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

auto loader_of(std::int64_t samples, std::int64_t batch_size) {
  return data_loader(test::Rows{samples}, {.batch_size = batch_size});
}

}  // namespace

// The first test, because a process prints this warning only once.
TEST_CASE("rank 0 warns once for the whole job if ranks share CPUs") {
  bool is_crowded = false;
  int rank = 0;
  const auto output = test::written_to(STDERR_FILENO, [&] {
    for (int round = 0; round < 2; ++round) {
      const State state;
      rank = state.process_index();
      is_crowded = state.world().threads().is_crowded;
    }
  });
  CHECK(count(output, "have less than one CPU of their own") == (is_crowded && rank == 0 ? 1 : 0));
}

TEST_CASE("rank 0 warns once for the whole job if threads spin on CPUs that other ranks need") {
  const char* asked = std::getenv("OMP_NUM_THREADS");
  const std::optional<std::string> before = asked == nullptr ? std::nullopt : std::optional<std::string>(asked);
  setenv("OMP_NUM_THREADS", "4096", 1);
  bool spins = false;
  int rank = 0;
  const auto output = test::written_to(STDERR_FILENO, [&] {
    for (int round = 0; round < 2; ++round) {
      const State state;
      rank = state.process_index();
      spins = state.world().threads().spins_on_others && !core::has_wait_policy(core::process_variables());
    }
  });
  before ? setenv("OMP_NUM_THREADS", before->c_str(), 1) : unsetenv("OMP_NUM_THREADS");
  CHECK(count(output, "have more threads than CPUs") == (spins && rank == 0 ? 1 : 0));
}

TEST_CASE("the first prepare with a loader prints the effective batch once, on the main process") {
  Accelerator accelerator;
  const auto output = test::written_to(STDERR_FILENO, [&] {
    accelerator.prepare(loader_of(1000, 4), loader_of(30, 2));
    accelerator.prepare(loader_of(1000, 8));
  });
  const int n = accelerator.num_processes();
  const bool is_main = accelerator.is_main_process();
  CHECK(count(output, "effective batch") == (is_main ? 1 : 0));
  CHECK(count(output, text::concat(4 * n, " of 1000 samples; ", 2 * n, " of 30 samples")) == (is_main ? 1 : 0));
}

TEST_CASE("the effective batch counts micro-steps only of what trains") {
  const AcceleratorOptions options = {.gradient_accumulation_steps = 4};
  const auto banner_of = [&](auto&&... loaders) {
    Accelerator accelerator(options);
    return test::written_to(STDERR_FILENO, [&] { accelerator.prepare(loaders...); });
  };
  const State state;
  const int n = state.num_processes();
  const auto alone = banner_of(loader_of(1000, 4));
  const auto with_evaluation = banner_of(loader_of(1000, 4), loader_of(30, 2));
  if (!state.is_main_process()) return;
  CHECK(count(alone, text::concat(16 * n, " (", 4 * n, " x 4 micro-steps) of 1000 samples")) == 1);
  CHECK(count(with_evaluation, text::concat(4 * n, " of 1000 samples; ", 2 * n,
                                            " of 30 samples (an update in training takes 4 of them)")) == 1);
}

TEST_CASE("the main process prints progress lines where there is no terminal") {
  Accelerator accelerator;
  const auto output = test::written_to(STDERR_FILENO, [&] {
    for (auto& batch : accelerator.progress(loader_of(8, 2), "these batches")) static_cast<void>(batch);
  });
  CHECK((count(output, "these batches") > 0) == accelerator.is_main_process());
}

TEST_CASE("attention of a model's own over a divided sequence is reported once") {
  const State state;
  Accelerator accelerator({.parallel = {.context = state.num_processes()}});
  torch::nn::Linear net(4, 4);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto attend = [&, &model = model](const auto& attention) {
    return test::written_to(STDERR_FILENO, [&] {
      auto tokens = at::ones({2, 16, 4});
      const auto divided = accelerator.maybe_context_parallel({{&tokens, 1}});
      if (attention != nullptr) attention(model(tokens).unsqueeze(1));
    });
  };
  using Attention = void (*)(const at::Tensor&);
  const Attention none = nullptr;
  const Attention usual = [](const at::Tensor& x) { at::scaled_dot_product_attention(x, x, x); };
  const Attention own = [](const at::Tensor& x) { at::matmul(at::softmax(at::matmul(x, x.mT()), -1), x); };
  const std::string report = "called no scaled_dot_product_attention";
  CHECK(count(attend(none) + attend(usual), report) == 0);
  const bool is_reported = state.num_processes() > 1 && state.is_main_process();
  CHECK(count(attend(own) + attend(own), report) == (is_reported ? 1 : 0));
}
