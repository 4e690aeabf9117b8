// Trains a little on random data, with noise, and saves nothing on the disk unless the file `save_every` holds a
// number. Writes the loss of each step to loss.csv, each step that it begins to steps.txt, and where it resumes to
// resumed.txt. While the file `hold` exists, steps take some milliseconds, and none begins after the number in it.
// Ranks on the host that the file `slow` names need longer for each step, and slow ranks are looked for. Arguments: the
// number of steps, and the bytes of a node for checkpoints in memory (0: the default).
//
// HORTATOR_TEST_RANKS_A_NODE=1 imitates nodes of one rank each, whose memory is HORTATOR_KEPT_MEMORY/node<number>, and
// whose disk is HORTATOR_LOCAL_FOLDER/node<number>.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <hortator/hortator.hpp>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <thread>

#include "integration/scale/traffic.hpp"

namespace {

int number_in(const char* file) {
  int number = 0;
  std::ifstream(file) >> number;
  return number;
}

void imitate_nodes() {
  const auto* ranks_a_node = std::getenv("HORTATOR_TEST_RANKS_A_NODE");
  const auto* folder = std::getenv("HORTATOR_KEPT_MEMORY");
  const auto* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (ranks_a_node == nullptr || folder == nullptr || rank == nullptr) return;
  hortator::scale::pretend_nodes_of(std::atoi(ranks_a_node));
  const auto own = std::filesystem::path(folder) / ("node" + std::to_string(std::atoi(rank) / std::atoi(ranks_a_node)));
  std::filesystem::create_directory(own);
  setenv("HORTATOR_KEPT_MEMORY", own.c_str(), 1);
  if (const auto* disks = std::getenv("HORTATOR_LOCAL_FOLDER"))
    setenv("HORTATOR_LOCAL_FOLDER", (std::filesystem::path(disks) / own.filename()).c_str(), 1);
}

void wait_while_held(std::int64_t steps) {
  using std::chrono::milliseconds;
  if (std::filesystem::exists("hold")) std::this_thread::sleep_for(milliseconds(5));
  while (std::filesystem::exists("hold") && steps >= number_in("hold")) std::this_thread::sleep_for(milliseconds(5));
}

/// The pace of this rank: that of the others, unless the file `slow` names its host when it starts.
class Pace {
 public:
  Pace() {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    std::ifstream in("slow");
    std::string slow;
    is_watched_ = static_cast<bool>(in >> slow);
    is_slow_ = slow == host.data();
  }
  hortator::StragglerOptions options() const {
    if (!is_watched_) return {};
    return {.on_straggler = [](const hortator::Straggler&) {}};
  }
  void keep() const {
    if (is_slow_) std::this_thread::sleep_for(std::chrono::milliseconds(150));
  }

 private:
  bool is_watched_ = false;
  bool is_slow_ = false;
};

void keep_rows(std::int64_t steps) {
  std::ifstream in("loss.csv");
  std::string kept;
  std::string line;
  for (std::int64_t row = 0; row < steps && std::getline(in, line); ++row) kept += line + '\n';
  in.close();
  std::ofstream("loss.csv", std::ios::trunc) << kept;
}

void train(std::int64_t steps, std::int64_t max_bytes) {
  const Pace pace;
  hortator::Accelerator accelerator(
      {.stragglers = pace.options(),
       .schedule_step = hortator::ScheduleStep::per_update,
       .memory_checkpoint = {.max_bytes = max_bytes > 0 ? std::optional(max_bytes) : std::nullopt}});
  hortator::set_seed(7);
  torch::nn::Sequential net(torch::nn::Linear(8, 16), torch::nn::Dropout(0.2), torch::nn::Linear(16, 1));
  torch::optim::AdamW adamw(net->parameters(), 0.01);
  auto [model, optimizer, schedule] =
      accelerator.prepare(net, adamw, hortator::linear_warmup(adamw, {.warmup_steps = 50, .total_steps = steps + 1}));
  if (accelerator.has_checkpoint()) accelerator.load_state();
  std::optional<std::ofstream> losses;
  accelerator.on_main_process([&] {
    keep_rows(schedule.steps());
    std::ofstream("resumed.txt", std::ios::app) << schedule.steps() << '\n';
    losses.emplace("loss.csv", std::ios::app);
    losses->precision(std::numeric_limits<double>::max_digits10);
  });
  const int save_every = number_in("save_every");
  while (schedule.steps() < steps) {
    wait_while_held(schedule.steps());
    pace.keep();
    if (accelerator.is_main_process()) std::ofstream("steps.txt", std::ios::app) << schedule.steps() << '\n';
    const auto batch = torch::randn({4, 8});
    auto loss = (model(batch).squeeze(1) - batch.sum(1)).square().mean();
    accelerator.backward(loss);
    optimizer.step();
    schedule.step();
    optimizer.zero_grad();
    const auto mean = accelerator.reduce(loss.detach(), hortator::Reduce::mean).item<double>();
    if (losses) *losses << schedule.steps() << ',' << mean << std::endl;
    if (save_every > 0 && schedule.steps() % save_every == 0) accelerator.save_state();
    if (accelerator.should_stop()) return;
  }
  accelerator.print("finished after ", schedule.steps(), " steps");
}

}  // namespace

int main(int argc, char** argv) {
  imitate_nodes();
  return hortator::run(argc, argv, [&] { train(std::atoll(argv[1]), argc > 2 ? std::atoll(argv[2]) : 0); });
}
