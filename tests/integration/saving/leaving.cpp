// leaving WHAT: saves into run/checkpoint; then once more into run/second, beside the program, on a disk that may fail
// or not answer (support/faults), and then
//   throw RANK   that rank throws while it is still being written;
//   end          the program ends, without waiting for it;
//   train        all ranks work together, forty times, before it is waited for;
//   mpio         (in place of all that) that save goes through MPI-IO;
//   load         (in place of all that) what is in run/checkpoint is loaded.
// Every rank says when something has happened, in milliseconds since 1970.
#include <torch/nn/modules/linear.h>

#include <chrono>
#include <hortator/hortator.hpp>
#include <iostream>
#include <thread>

using namespace hortator;

namespace {

void tell(const Accelerator& accelerator, const std::string& what) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  std::cout << "rank " + std::to_string(accelerator.process_index()) + " " + what + " at " + std::to_string(at) + "\n"
            << std::flush;
}

void fill(torch::nn::Module& net, double version) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : net.parameters()) parameter.fill_(version);
}

void tell_version(Accelerator& accelerator, const torch::nn::Module& net) {
  accelerator.load_state();
  const auto version = net.parameters().front().flatten()[0].item<double>();
  for (const auto& parameter : net.parameters()) {
    if (!parameter.eq(version).all().item<bool>()) throw std::runtime_error("what was loaded is a mixture");
  }
  accelerator.on_main_process([&] { std::cout << "loaded " << version << std::endl; });
}

void work_together(Accelerator& accelerator) {
  for (int step = 0; step < 40; ++step) {
    accelerator.reduce(at::ones({10}));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void leave(const std::string& what, int rank) {
  const bool by_mpi = what == "mpio";
  Accelerator accelerator(
      {.project = {.dir = "run"},
       .checkpoint = {.writer = by_mpi ? CheckpointWriter::mpio : CheckpointWriter::direct, .asynchronous = !by_mpi}});
  torch::nn::Linear net(300, 1000);
  auto model = accelerator.prepare(net);
  if (what == "load") return tell_version(accelerator, *net);
  fill(*net, 1);
  accelerator.save_state();
  accelerator.wait_for_checkpoint();
  fill(*net, 2);
  tell(accelerator, "saves");
  accelerator.save_state("run/second");
  tell(accelerator, "goes on");
  if (what == "throw" && accelerator.process_index() == rank) throw std::runtime_error("the program's own reason");
  if (what == "throw") accelerator.wait_for_everyone();
  if (what != "train") return;
  work_together(accelerator);
  tell(accelerator, "has worked");
  accelerator.wait_for_checkpoint();
  tell(accelerator, "has waited");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return run(argc, argv, [&] { leave(words.at(0), words.size() > 1 ? std::stoi(words[1]) : 0); });
}
