// A program whose last rank makes the others wait, in the way that its first argument selects. Prints the time when the
// waiting begins. Endings that begin with "well" must not be reported as stalled: they take longer than
// HORTATOR_TIMEOUT and succeed.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <hortator/run.hpp>
#include <hortator/state.hpp>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "comm/backends/make_communicator.hpp"
#include "core/activity/activity.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"

// Exported, so that stacks show its name.
extern "C" __attribute__((visibility("default"), noinline)) void dawdle_in_user_code(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

namespace {

using hortator::State;
using namespace std::chrono_literals;

// The set-up of each ending: a State and a communicator for tensors, which have completed a first collective.
struct Scene {
  explicit Scene(const hortator::StateOptions& options) : state(options) {
    sum();
    state.wait_for_everyone();
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::cout << "failing at " + std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) +
                     "\n"
              << std::flush;
  }
  void sum() {
    auto tensor = at::ones({4});
    tensors->all_reduce(tensor, hortator::comm::ReduceOp::sum).wait();
  }
  bool is_last() const { return state.is_last_process(); }

  State state;
  std::unique_ptr<hortator::comm::Communicator> tensors =
      hortator::comm::make_communicator(state.world().comm(), at::kCPU, hortator::comm::checks_from_environment());
};

void stopped(Scene& scene) {
  if (scene.is_last()) std::raise(SIGSTOP);
  scene.sum();
}

void left(Scene& scene) {
  if (scene.is_last()) std::exit(0);
  scene.sum();
}

// A child process stops this rank's main thread for this time, as a debugger would.
void be_held_by_a_child(std::chrono::milliseconds time) {
  const auto held = getpid();
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  const auto child = fork();
  if (child == -1) throw hortator::Error({.what = "Cannot fork a child to trace this rank"});
  if (child == 0) {
    const bool holds = ptrace(PTRACE_SEIZE, held, nullptr, nullptr) == 0 &&
                       ptrace(PTRACE_INTERRUPT, held, nullptr, nullptr) == 0 && waitpid(held, nullptr, __WALL) == held;
    std::this_thread::sleep_for(time);
    _exit(holds ? 0 : 1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) continue;
  if (status != 0) throw hortator::Error({.what = "The child cannot trace its parent"});
}

// The last rank destroys its State and waits for the others in MPI_Finalize.
void returned(Scene& scene) {
  if (!scene.is_last()) scene.sum();
}

// The last rank leaves its training loop after one update, and destroys its Accelerator.
void returned_early(Scene& scene) {
  hortator::Accelerator accelerator;
  torch::nn::Linear net(3, 1);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  for (int step = 0; step < 3; ++step) {
    if (step == 1 && scene.is_last()) return;
    accelerator.backward(model(at::ones({2, 3})).sum());
    optimizer.step();
    optimizer.zero_grad();
  }
}

void ended(Scene& scene) {
  if (scene.is_last()) _exit(0);
  scene.sum();
}

void killed(Scene& scene) {
  if (scene.is_last()) std::raise(SIGKILL);
  scene.sum();
}

void crashed(Scene& scene) {
  if (scene.is_last()) std::raise(SIGSEGV);
  scene.sum();
}

void mismatch(Scene& scene) {
  if (scene.is_last()) {
    scene.state.wait_for_everyone();
  } else {
    scene.sum();
  }
}

// The last rank waits, while the others save.
void saving(Scene& scene) {
  hortator::Accelerator accelerator;
  if (scene.is_last()) {
    accelerator.wait_for_everyone();
  } else {
    accelerator.save_state("saved");
  }
}

void odd_count(Scene& scene) {
  auto tensor = at::ones({scene.is_last() ? 5 : 4});
  scene.tensors->all_reduce(tensor, hortator::comm::ReduceOp::sum).wait();
}

// The last rank waits on one communicator, the others on another.
void crossed(Scene& scene) {
  const auto part = scene.tensors->split(0, 0);
  if (scene.is_last()) {
    auto tensor = at::ones({4});
    part->all_reduce(tensor, hortator::comm::ReduceOp::sum).wait();
  } else {
    scene.sum();
  }
}

struct LadderImpl : torch::nn::Module {
  LadderImpl() {
    for (int i = 0; i < 16; ++i)
      rungs.push_back(register_module("rung" + std::to_string(i), torch::nn::Linear(512, 512)));
  }
  at::Tensor forward(at::Tensor x) {
    for (std::size_t i = 0; i < rungs.size(); ++i)
      if (i != 12 || !skips) x = at::tanh(rungs[i](x));
    return x;
  }
  std::vector<torch::nn::Linear> rungs;
  bool skips = false;
};
TORCH_MODULE(Ladder);

// ZeRO 2 waits for gradients within backward, and the last rank has none for two parameters.
void left_out(Scene& scene) {
  hortator::Accelerator accelerator({.zero = {.stage = 2}});
  Ladder net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  for (const bool skips : {false, scene.is_last()}) {
    net->skips = skips;
    accelerator.backward(model(at::ones({2, 512})).sum());
    optimizer.step();
    optimizer.zero_grad();
  }
}

void late(Scene& scene) {
  if (scene.is_last()) dawdle_in_user_code(60s);
  scene.sum();
}

// Runs until it is killed.
void endless(Scene& scene) {
  while (true) scene.sum();
}

// All ranks are busy; none waits.
void well_busy(Scene& scene) {
  dawdle_in_user_code(3500ms);
  scene.sum();
}

void well_in_checkpoint(Scene& scene) {
  const hortator::activity::PhaseScope phase(hortator::activity::Phase::checkpoint);
  if (scene.is_last()) dawdle_in_user_code(3500ms);
  scene.sum();
}

void well_in_turns(Scene& scene) {
  scene.state.main_process_first([&] {
    if (scene.state.is_main_process()) dawdle_in_user_code(3500ms);
  });
}

void well_first(Scene& scene) {
  const auto other =
      hortator::comm::make_communicator(scene.state.world().comm(), at::kCPU, hortator::comm::Checks::off);
  if (scene.is_last()) dawdle_in_user_code(3s);
  auto tensor = at::ones({4});
  other->all_reduce(tensor, hortator::comm::ReduceOp::sum).wait();
}

// The test suspends the whole job during this time. The work is counted in steps, because the clock jumps.
void well_suspended(Scene& scene) {
  for (int i = 0; i < 75 && scene.is_last(); ++i) std::this_thread::sleep_for(20ms);
  scene.sum();
}

// A child process traces the rank, as a debugger would, and releases it when it exits.
void well_traced(Scene& scene) {
  if (scene.is_last()) be_held_by_a_child(3500ms);
  scene.sum();
}

const std::map<std::string, std::function<void(Scene&)>> endings = {{"stopped", stopped},
                                                                    {"left", left},
                                                                    {"returned", returned},
                                                                    {"returned_early", returned_early},
                                                                    {"ended", ended},
                                                                    {"killed", killed},
                                                                    {"crashed", crashed},
                                                                    {"mismatch", mismatch},
                                                                    {"saving", saving},
                                                                    {"odd_count", odd_count},
                                                                    {"crossed", crossed},
                                                                    {"left_out", left_out},
                                                                    {"late", late},
                                                                    {"endless", endless},
                                                                    {"well_busy", well_busy},
                                                                    {"well_in_checkpoint", well_in_checkpoint},
                                                                    {"well_in_turns", well_in_turns},
                                                                    {"well_first", well_first},
                                                                    {"well_suspended", well_suspended},
                                                                    {"well_traced", well_traced}};

// TIMEOUT_BY_OPTION: the option collective_timeout, in milliseconds.
hortator::StateOptions options_from_environment() {
  const char* time = std::getenv("TIMEOUT_BY_OPTION");
  if (time == nullptr) return {};
  return {.collective_timeout = std::chrono::milliseconds(std::stol(time))};
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    Scene scene(options_from_environment());
    endings.at(argv[1])(scene);
  });
}
