// leaving MODE [RANK]: saves into run/checkpoint, then starts an asynchronous save into run/second, on a disk that may
// fail or block (support/faults). Then, by MODE:
//   throw RANK   that rank throws during the second save;
//   end          the program ends without waiting for the second save;
//   train        all ranks run 40 collectives, then wait for the second save;
//   mpio         the second save is synchronous, by MPI-IO;
//   load         nothing is saved: loads run/checkpoint.
// Every rank prints events with their times, in milliseconds since 1970.
#include <torch/nn/modules/linear.h>

#include <chrono>
#include <hortator/hortator.hpp>
#include <iostream>
#include <thread>

using namespace hortator;

namespace {

void print_event(const Accelerator& accelerator, const std::string& what) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  std::cout << "rank " + std::to_string(accelerator.process_index()) + " " + what + " at " + std::to_string(at) + "\n"
            << std::flush;
}

void fill(torch::nn::Module& net, double version) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : net.parameters()) parameter.fill_(version);
}

void print_loaded_version(Accelerator& accelerator, const torch::nn::Module& net) {
  accelerator.load_state();
  const auto version = net.parameters().front().flatten()[0].item<double>();
  for (const auto& parameter : net.parameters()) {
    if (!parameter.eq(version).all().item<bool>())
      throw std::runtime_error("the loaded checkpoint is a mixture of versions");
  }
  accelerator.on_main_process([&] { std::cout << "loaded " << version << std::endl; });
}

void work_together(Accelerator& accelerator) {
  for (int step = 0; step < 40; ++step) {
    accelerator.reduce(at::ones({10}));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void leave(const std::string& mode, int rank) {
  const bool by_mpi = mode == "mpio";
  Accelerator accelerator(
      {.project = {.dir = "run"},
       .checkpoint = {.writer = by_mpi ? CheckpointWriter::mpio : CheckpointWriter::direct, .asynchronous = !by_mpi}});
  torch::nn::Linear net(300, 1000);
  auto model = accelerator.prepare(net);
  if (mode == "load") return print_loaded_version(accelerator, *net);
  fill(*net, 1);
  accelerator.save_state();
  accelerator.wait_for_checkpoint();
  fill(*net, 2);
  print_event(accelerator, "saves");
  accelerator.save_state("run/second");
  print_event(accelerator, "continues");
  if (mode == "throw" && accelerator.process_index() == rank) throw std::runtime_error("the program's own reason");
  if (mode == "throw") accelerator.wait_for_everyone();
  if (mode != "train") return;
  work_together(accelerator);
  print_event(accelerator, "has worked");
  accelerator.wait_for_checkpoint();
  print_event(accelerator, "has waited");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return run(argc, argv, [&] { leave(arguments.at(0), arguments.size() > 1 ? std::stoi(arguments[1]) : 0); });
}
