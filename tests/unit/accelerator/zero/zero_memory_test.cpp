// The memory that each rank has for parameters, gradients and moments.
#include <malloc.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include <fstream>

#include "machine/memory/recycling_allocator.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t width = 1024;
constexpr int layers = 100;  // 400 MiB
constexpr double megabyte = 1 << 20;

/// This process's proportional set size: memory that processes share is divided among them. Without files, because
/// which of a library's pages are in memory depends on every program that uses it.
double proportional_megabytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  double kilobytes = 0;
  for (std::string field; file >> field;) {
    double more = 0;
    if ((field == "Pss_Anon:" || field == "Pss_Shmem:") && file >> more) kilobytes += more;
  }
  return kilobytes / 1024;
}

double megabytes_of(const torch::optim::Optimizer& optimizer) {
  double bytes = 0;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      const auto state = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (state == optimizer.state().end()) continue;
      const auto& adam = static_cast<const torch::optim::AdamWParamState&>(*state->second);
      bytes += static_cast<double>(adam.exp_avg().nbytes() + adam.exp_avg_sq().nbytes());
    }
  }
  return bytes / megabyte;
}

torch::nn::Sequential make_net(int depth) {
  torch::nn::Sequential net;
  for (int i = 0; i < depth; ++i) net->push_back(torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)));
  return net;
}

struct MemoryUse {
  double megabytes = 0;  ///< of parameters, gradients and moments between two steps
  double moments = 0;
  int ranks = 1;
};

void return_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

MemoryUse train_two_steps(int stage, int depth) {
  Accelerator accelerator({.zero = {.stage = stage}});
  at::manual_seed(1);
  return_free_memory();  // memory that others have freed must not be reused uncounted
  const double before = proportional_megabytes();
  auto net = make_net(depth);
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  for (int step = 0; step < 2; ++step) {
    accelerator.backward(model(at::ones({4, width})).square().mean());
    if (stage > 1) {
      for (const auto& parameter : net->parameters()) CHECK(!parameter.grad().defined());
    }
    optimizer.step();
    if (step == 0) optimizer.zero_grad();
  }
  accelerator.wait_for_everyone();
  return_free_memory();  // how much of it the allocator keeps varies from run to run
  MemoryUse use{.megabytes = proportional_megabytes() - before,
                .moments = megabytes_of(adamw),
                .ranks = accelerator.num_processes()};
  accelerator.wait_for_everyone();
  return use;
}

}  // namespace

TEST_CASE("parameters, gradients and moments are distributed over ranks") {
  constexpr double parameters = layers * width * width * 4 / megabyte;
  train_two_steps(1, 4);  // libraries are loaded into memory on first use
  for (const int stage : {1, 2, 3}) {
    if (stage < 3 && State().num_nodes() > 1) continue;  // then each node has all parameters
    INFO("stage " << stage);
    const auto [used, moments, ranks] = train_two_steps(stage, layers);
    CHECK(moments <= 2 * parameters / ranks * 1.01);
    // The shares of all, and 5 % of the total. At stage 1 each rank has its own gradients, as a whole.
    const double gradients = stage > 1 ? parameters / ranks : parameters;
    const double allowed = 3 * parameters / ranks + gradients + 0.05 * 4 * parameters;
    INFO(used << " MB of " << allowed);
    CHECK(used <= allowed);
  }
}

TEST_CASE("the peak of a rank is its shares, two arrays of gradients that are not sent yet, and one more gradient") {
  constexpr double parameters = layers * width * width * 4 / megabyte;
  constexpr double array = 16;  // MiB: a 32nd of the model, in whole layers
  constexpr double gradient = width * width * 4 / megabyte;
  const machine::RecyclingAllocator counted(0);
  Accelerator accelerator({.zero = {.stage = 3}});
  const auto before = static_cast<double>(machine::RecyclingAllocator::counters().used_bytes);
  auto net = make_net(layers);
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  machine::RecyclingAllocator::reset_peak();
  for (int step = 0; step < 2; ++step) {
    accelerator.backward(model(at::ones({4, width})).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  const double peak =
      (static_cast<double>(machine::RecyclingAllocator::counters().peak_used_bytes) - before) / megabyte;
  // Gradients and moments. Parameters, and two arrays that are being sent, are in memory that the ranks share; over
  // several nodes the parameters' shares are counted as well. (Frames of arrays in use never are: see
  // page_traffic.hpp.)
  const bool over_nodes = accelerator.num_nodes() > 1;
  const double shares = (over_nodes ? 4 : 3) * parameters / accelerator.num_processes();
  INFO(peak << " MB, of shares " << shares);
  CHECK(peak > shares * 0.99);  // they are counted
  CHECK(peak <= shares + 2 * array + gradient);
  accelerator.wait_for_everyone();
}

TEST_CASE("a model that is constructed while it is sharded is whole on no rank") {
  constexpr int depth = 24;
  constexpr double parameters = depth * width * width * 4 / megabyte;
  constexpr double layer = width * width * 4 / megabyte;
  const auto expected = [] {
    at::manual_seed(5);
    return test::copies_of(*make_net(depth));
  }();
  const machine::RecyclingAllocator counted(0);
  Accelerator accelerator({.zero = {.stage = 3}});
  at::manual_seed(accelerator.is_main_process() ? 5 : 6);  // all ranks get rank 0's values
  const auto before = static_cast<double>(machine::RecyclingAllocator::counters().used_bytes);
  machine::RecyclingAllocator::reset_peak();
  auto net = construct_deferred([] { return make_net(depth); });
  auto model = accelerator.prepare(net);
  const double peak =
      (static_cast<double>(machine::RecyclingAllocator::counters().peak_used_bytes) - before) / megabyte;
  INFO(peak << " MB");
  const int shares = accelerator.num_nodes() > 1 ? 2 : 1;  // of gradients, and of parameters
  CHECK(peak <= shares * parameters / accelerator.num_processes() + 2 * layer);
  CHECK(test::are_equal(test::copies_of(*net), expected));
  accelerator.wait_for_everyone();
}
