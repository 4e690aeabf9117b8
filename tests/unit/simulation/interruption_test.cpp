// Signals to a program that begins runs, and what the program itself has set: handlers and OpenMP's threads. A program
// of its own: signals that have come stay recorded in the process.
#include <ATen/Parallel.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <csignal>
#include <hortator/models/registered.hpp>

#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

namespace {

constexpr auto settings =
    "models: {net: {type: mlp, layers: [2, 4, 1], optimizer: {type: sgd, lr: 0.1}},"
    " observing: {type: module, name: observing, optimizer: {type: sgd, lr: 0.1}}}\n"
    "buffers: {samples: {type: ring, capacity: 8, batch_size: 2}}\n";

/// The three signals end the process, as in a program without a test framework.
class DefaultSignals {
 public:
  DefaultSignals() {
    for (std::size_t i = 0; i < signals.size(); ++i) {
      struct sigaction usual {};
      usual.sa_handler = SIG_DFL;
      sigaction(signals[i], &usual, &before_[i]);
    }
  }
  ~DefaultSignals() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  DefaultSignals(const DefaultSignals&) = delete;
  DefaultSignals& operator=(const DefaultSignals&) = delete;

 private:
  static constexpr std::array<int, 3> signals = {SIGUSR1, SIGTERM, SIGINT};
  std::array<struct sigaction, 3> before_{};
};

bool does_nothing_of_ours(int signal) {
  struct sigaction current {};
  sigaction(signal, nullptr, &current);
  return current.sa_handler == SIG_DFL;
}

bool all_are_default() {
  return does_nothing_of_ours(SIGUSR1) && does_nothing_of_ours(SIGTERM) && does_nothing_of_ours(SIGINT);
}

int threads_in_forward = 0;

/// Notes the number of threads with which it computes.
class ObservingNet : public torch::nn::Module {
 public:
  ObservingNet() { layer_ = register_module("layer", torch::nn::Linear(2, 1)); }
  at::Tensor forward(const at::Tensor& input) {
    threads_in_forward = at::get_num_threads();
    return layer_(input);
  }

 private:
  torch::nn::Linear layer_{nullptr};
};

void register_observing() {
  static const bool once = [] {
    hortator::models::register_module("observing", [] { return torch::nn::AnyModule(ObservingNet()); });
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

TEST_CASE("handlers are there while a run lives, and the program's reactions are put back after it", "[simulation]") {
  const DefaultSignals usual;
  for (int time = 0; time < 2; ++time) {
    CRun run(settings_file("handlers", settings));
    REQUIRE(run.status() == HORTATOR_OK);
    CHECK_FALSE(does_nothing_of_ours(SIGUSR1));
    int32_t stop = -1;
    REQUIRE(hortator_should_stop(run, &stop) == HORTATOR_OK);
    CHECK(stop == 0);
    CHECK_FALSE(does_nothing_of_ours(SIGTERM));
    CHECK_FALSE(does_nothing_of_ours(SIGINT));
    run.end();
    CHECK(all_are_default());
  }
}

TEST_CASE("calls leave the program's OpenMP threads alone, and models compute with their own", "[simulation]") {
  register_observing();
  at::get_num_threads();   // sets LibTorch's default, once in a thread
  at::set_num_threads(3);  // as omp_set_num_threads(3) of a solver
  CRun run(settings_file("threads", std::string("model_threads: 2\n") + settings));
  REQUIRE(run.status() == HORTATOR_OK);
  CHECK(at::get_num_threads() == 3);
  auto* model = run.model("observing");
  auto* buffer = run.buffer("samples");
  REQUIRE(model != nullptr);
  CHECK(at::get_num_threads() == 3);
  std::vector<float> inputs = {1, 2, 3, 4};
  std::vector<float> targets = {1, 2};
  {
    CBatch batch(run);
    batch.add(HORTATOR_INPUT, Array(inputs, {2, 2})).add(HORTATOR_TARGET, Array(targets, {2, 1}));
    batch.add(HORTATOR_OUTPUT, Array(targets, {2, 1}));
    const auto computes_with_two = [&](hortator_status status) {
      return status == HORTATOR_OK && std::exchange(threads_in_forward, 0) == 2 && at::get_num_threads() == 3;
    };
    CHECK(computes_with_two(hortator_infer(model, batch)));
    CHECK(computes_with_two(hortator_train(model, batch, nullptr)));
    double loss = 0;
    CHECK(computes_with_two(hortator_evaluate(model, batch, &loss)));
    REQUIRE(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
    CHECK(computes_with_two(hortator_buffer_train(buffer, model, 1, nullptr)));
  }
  CHECK(hortator_save(run, 0, nullptr) == HORTATOR_OK);
  run.end();
  CHECK(at::get_num_threads() == 3);
  at::set_num_threads(1);
}

TEST_CASE("SIGUSR1 to one rank stops the run on all ranks, saved, with code 75", "[simulation]") {
  const DefaultSignals usual;
  CRun run(settings_file("minutes", settings));
  auto* model = run.model("net");
  std::vector<float> inputs = {1, 2, 3, 4};
  std::vector<float> targets = {1, 2};
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(inputs, {2, 2})).add(HORTATOR_TARGET, Array(targets, {2, 1}));
  REQUIRE(hortator_train(model, batch, nullptr) == HORTATOR_OK);
  if (world_rank() == world_size() - 1) std::raise(SIGUSR1);
  int32_t stop = 0;
  for (int step = 0; step < 3 && stop == 0; ++step) {  // what ranks vote on travels with the next gradients
    REQUIRE(hortator_train(model, batch, nullptr) == HORTATOR_OK);
    REQUIRE(hortator_should_stop(run, &stop) == HORTATOR_OK);
  }
  CHECK(stop == 1);
  if (world_rank() == 0) CHECK(std::filesystem::exists("run_minutes/checkpoint"));
  int32_t code = -1;
  CHECK(hortator_end(run, &code) == HORTATOR_OK);
  run.forget();
  CHECK(code == 75);
  std::raise(SIGUSR1);  // a late one does no harm
  CHECK(does_nothing_of_ours(SIGTERM));
  CHECK(does_nothing_of_ours(SIGINT));
}
