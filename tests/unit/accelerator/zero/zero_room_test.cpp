// Training in less memory than the parameters and moments need. A separate program, because memory that other tests
// have freed would be reused.
#include <torch/nn/modules/container/sequential.h>

#include <filesystem>
#include <vector>

#include "machine/memory/recycling_allocator.hpp"
#include "support/catch.hpp"
#include "support/memory.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t width = 1024;
constexpr std::int64_t layer_bytes = width * width * 4;
constexpr int layers_per_rank = 24;
// Per rank: pages, gradients that are being sent, a batch, thread stacks.
constexpr rlim_t memory_limit = rlim_t{80} << 20;

torch::nn::Sequential make_net(int layers) {
  at::manual_seed(1);
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i)
    net->push_back(torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)));
  return net;
}

std::vector<double> losses_of(Accelerator& accelerator, torch::nn::Sequential& net) {
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  std::vector<double> losses;
  for (int step = 0; step < 3; ++step) {
    const auto loss = model(at::ones({4, width}) * (accelerator.process_index() + 1)).square().mean();
    losses.push_back(loss.item<double>());
    accelerator.backward(loss);
    accelerator.clip_grad_norm_(model.parameters(), 1);
    optimizer.step();
    optimizer.zero_grad();
  }
  accelerator.wait_for_everyone();
  return losses;
}

}  // namespace

TEST_CASE("a model that needs four times the memory is constructed and trained on disk, with the same losses") {
  const int ranks = State().num_processes();
  const int layers = layers_per_rank * ranks;
  const rlim_t model_bytes = 4 * static_cast<rlim_t>(layers * layer_bytes);  // parameters, gradients, two moments
  CHECK(model_bytes >= 4 * memory_limit * static_cast<rlim_t>(ranks));
  const test::Folder folder(State(), "zero_room");
  std::vector<double> losses;
  {  // first, while the C library has no freed memory
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 4},
                             .zero = {.stage = 3,
                                      .offload_optimizer = folder.path(),
                                      .offload_parameters = folder.path(),
                                      .resident_bytes = std::uint64_t{12} << 20}});
    const machine::RecyclingAllocator blocks(4 << 20);  // so that holes in the C library's heap are not measured
    const test::MemoryLimit limit(memory_limit);
    CHECK_THROWS(at::empty({layers, width, width}));  // the limit works
    auto net = construct_deferred([&] { return make_net(layers); });
    losses = losses_of(accelerator, net);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 4}, .zero = {.stage = 3}});
  auto net = make_net(layers);
  CHECK(losses == losses_of(accelerator, net));
  CHECK(losses[1] != losses[0]);  // the model was updated
}
