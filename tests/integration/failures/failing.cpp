// A program that ends in the way that its first argument selects. Prints the time just before it fails, so that the
// time to the end of the job can be measured.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <hortator/error.hpp>
#include <hortator/run.hpp>
#include <hortator/state.hpp>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "mpi/agree.hpp"
#include "runtime/ending/stop_signal.hpp"
#include "runtime/identity/run_folder.hpp"
#include "runtime/world.hpp"

namespace {

using hortator::State;

void announce_failure() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::cout << "failing at " + std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) + "\n"
            << std::flush;
}

[[noreturn]] void fail(const std::string& problem) {
  announce_failure();
  throw std::runtime_error(problem);
}

bool is_last(const State& state) { return state.is_last_process(); }

// The other ranks wait in a collective, for ever unless the job is ended.
void one() {
  const State state;
  if (is_last(state)) fail("the last rank has a problem");
  state.wait_for_everyone();
}

void all() {
  const State state;
  state.wait_for_everyone();
  fail("every rank has a problem");
}

// The rank with the error throws last: the other ranks must not report it.
void agreed() {
  const State state;
  if (is_last(state)) announce_failure();
  try {
    hortator::mpi::all_or_none(state.world().comm(), [&] {
      if (is_last(state)) throw std::runtime_error("no such file");
    });
  } catch (...) {
    if (is_last(state)) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    throw;
  }
}

// Ranks are numbered from 0 within a node, so the error may name a rank that does not throw it.
void agreed_in_node() {
  const State state;
  if (state.process_index() == state.num_processes() - 1) announce_failure();
  if (state.num_nodes() > 1 && state.world().topology().node == 0) return state.wait_for_everyone();
  hortator::mpi::all_or_none(state.world().node(), [] { throw std::runtime_error("this node is full"); });
}

void agreed_by_part() {
  const State state;
  const auto part = state.world().comm().split(state.is_main_process() ? 0 : 1, 0);
  if (state.is_main_process()) return state.wait_for_everyone();
  announce_failure();
  hortator::mpi::all_or_none(part, [] { throw std::runtime_error("this part is full"); });
}

void located() {
  const State state;
  if (is_last(state)) {
    announce_failure();
    throw hortator::UsageError({.what = "batch_size is 0", .why = "nothing would be learnt", .hint = "take 1 or more"});
  }
  state.wait_for_everyone();
}

void odd() {
  const State state;
  if (is_last(state)) {
    announce_failure();
    throw 42;
  }
  state.wait_for_everyone();
}

void lines() {
  const State state;
  if (is_last(state)) fail("first line\n  second line\n\n");
  state.wait_for_everyone();
}

void torch() {
  const State state;
  if (is_last(state)) {
    announce_failure();
    at::zeros({2}).view({3});
  }
  state.wait_for_everyone();
}

void thread() {
  const State state;
  if (is_last(state)) std::thread([] { fail("a thread has a problem"); }).join();
  state.wait_for_everyone();
}

// The other ranks are not in an MPI call.
void busy() {
  const bool last = is_last(State());
  if (last) fail("the last rank has a problem");
  std::this_thread::sleep_for(std::chrono::seconds(30));
}

// The other ranks have left the function and wait in MPI_Finalize.
void late() {
  const bool last = is_last(State());
  if (last) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    fail("the last rank has a problem");
  }
}

void in_project_folder() {
  const State state;
  hortator::runtime::set_run_folder("project/here");
  state.wait_for_everyone();
  fail("every rank has a problem");
}

void stopped() {
  std::raise(SIGUSR1);
  if (!hortator::runtime::minutes_signal_received()) throw std::runtime_error("the signal was lost");
  std::cout << "alive\n";
}

void well() { State().wait_for_everyone(); }

const std::map<std::string, std::function<void()>> endings = {{"one", one},
                                                              {"all", all},
                                                              {"agreed", agreed},
                                                              {"agreed_in_node", agreed_in_node},
                                                              {"agreed_by_part", agreed_by_part},
                                                              {"located", located},
                                                              {"odd", odd},
                                                              {"lines", lines},
                                                              {"torch", torch},
                                                              {"thread", thread},
                                                              {"busy", busy},
                                                              {"late", late},
                                                              {"stopped", stopped},
                                                              {"well", well},
                                                              {"in_project_folder", in_project_folder}};

}  // namespace

int main(int argc, char** argv) { return hortator::run(argc, argv, endings.at(argv[1])); }
