// Runs that resume on the same type of device or the other.
#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

namespace {

enum class On { cpu, cuda };

AcceleratorOptions options_for(On where, const std::filesystem::path& folder, bool asynchronous) {
  return {.cpu = where == On::cpu,
          .log_with = {},
          .project = {.dir = folder},
          .checkpoint = {.asynchronous = asynchronous}};
}

/// The losses from step `first` to step 20. Saves after 10 steps.
std::vector<double> run(On where, const std::filesystem::path& folder, int first, bool asynchronous = false) {
  Accelerator accelerator(options_for(where, folder, asynchronous));
  set_seed(first > 0 ? 99 : 7);
  Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer, loader, schedule] =
      accelerator.prepare(net, adamw, data_loader(Rows{21}, {.batch_size = 2, .shuffle = true}),
                          cosine_warmup(adamw, {.warmup_steps = 3, .total_steps = 200}));
  if (first > 0) accelerator.load_state();
  std::vector<double> losses;
  for (int step = first; step < 20;) {
    for (auto& batch : loader) {
      auto loss = at::mse_loss(model(batch.data), batch.target);
      accelerator.backward(loss);
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      losses.push_back(loss.template item<double>());
      if (++step == 10 && first == 0) accelerator.save_state();
      if (step == 20) break;
    }
  }
  accelerator.end_training();
  return losses;
}

bool are_near(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > 1e-5 * std::max(1.0, std::abs(b[i]))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a run that is saved on one type of device resumes on the other") {
  if (!test::has_gpu()) return;
  for (const auto saved_on : {On::cuda, On::cpu}) {
    for (const bool asynchronous : {false, true}) {
      std::filesystem::path folder;
      {
        const State state;
        folder = std::filesystem::absolute("folder_gpu_checkpoint");
        std::filesystem::remove_all(folder);
      }
      const auto whole = run(saved_on, folder, 0, asynchronous);
      const std::vector<double> remaining(whole.begin() + 10, whole.end());
      CHECK(are_near(run(On::cuda, folder, 10), remaining));
      CHECK(are_near(run(On::cpu, folder, 10), remaining));
      std::filesystem::remove_all(folder);
    }
  }
}

// Bitwise, including the device's random numbers.
TEST_CASE("an interrupted run on the device resumes bit for bit") {
  if (!test::has_gpu()) return;
  const auto folder = std::filesystem::absolute("folder_gpu_resume");
  const auto train = [&](int first) {
    Accelerator accelerator(options_for(On::cuda, folder, false));
    set_seed(first > 0 ? 99 : 7);
    Net net(0.5);
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    if (first > 0) accelerator.load_state();
    std::vector<double> losses;
    for (int step = first; step < 8; ++step) {
      if (step == 4 && first == 0) accelerator.save_state();
      const auto loss = model(at::ones({16, 3}, accelerator.device())).square().sum();
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      losses.push_back(loss.template item<double>());
    }
    return losses;
  };
  std::filesystem::remove_all(folder);
  const auto whole = train(0);
  CHECK(train(4) == std::vector<double>(whole.begin() + 4, whole.end()));
  std::filesystem::remove_all(folder);
}
