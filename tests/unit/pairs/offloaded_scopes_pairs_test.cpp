// Modules whose parameters are in pages, in scopes at whose end all ranks take over parameters.
#include <torch/nn/modules/container/sequential.h>

#include <hortator/bigmodel/offload.hpp>

#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;

namespace {

/// The weights after rank r has taken r + 1 steps in the scope, and all ranks one more.
std::vector<at::Tensor> train(bool on_disk, bool local, const std::filesystem::path& folder) {
  Accelerator accelerator({.data = {.even_batches = false}});
  at::manual_seed(3);
  torch::nn::Sequential net(torch::nn::Linear(3, 5), torch::nn::Linear(5, 2));
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  std::optional<Offload> offload;
  if (on_disk) {
    offload.emplace(disk_offload(net, folder / std::to_string(accelerator.process_index()),
                                 {.resident_bytes = 128, .page_bytes = 64}));
  }
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  const auto steps = [&, &model = model, &optimizer = optimizer](int count, const auto& after) {
    for (int step = 0; step < count; ++step) {
      accelerator.backward(model(at::full({2, 3}, 1.0 + step + accelerator.process_index())).square().mean());
      optimizer.step();
      optimizer.zero_grad();
      after();
    }
  };
  const int mine = accelerator.process_index() + 1;
  if (local) {
    LocalSGD local_sgd(accelerator, model, {.steps = 1});
    steps(mine, [&] { local_sgd.step(); });
  } else {
    const auto joined = accelerator.join_uneven_inputs({model});
    steps(mine, [] {});
  }
  steps(1, [] {});
  for (const auto& parameter : net->parameters()) CHECK(test::same_on_all_ranks(accelerator, parameter));
  return test::copies_of(*net);
}

}  // namespace

TEST_CASE("ranks that end with different numbers of steps take over parameters in pages as those in memory") {
  const State all;
  for (const bool local : {false, true}) {
    INFO((local ? "LocalSGD" : "join_uneven_inputs"));
    const test::Folder folder(all, "paged_scopes");
    CHECK(test::are_equal(train(true, local, folder.path()), train(false, local, folder.path())));
  }
}
