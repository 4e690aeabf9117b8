// A module on a device whose parameters are in the host's memory or in files between their uses.
#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <hortator/bigmodel/offload.hpp>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>

#include "machine/device/memory.hpp"
#include "mpi/communicator.hpp"
#include "paging/stores/host_stores.hpp"
#include "paging/stores/staged_store.hpp"
#include "support/catch.hpp"
#include "support/far_device.hpp"
#include "unit/paging/fixtures.hpp"

using namespace hortator;
using test::far_device;

namespace {

constexpr std::int64_t chain_width = 64;
constexpr std::int64_t chain_layers = 12;
constexpr std::uint64_t chain_layer_bytes = 4 * chain_width * (chain_width + 1);
const CpuOffloadOptions chain_quarter = {.resident_bytes = chain_layers * chain_layer_bytes / 4 + 4096 * 4,
                                         .page_bytes = chain_layer_bytes + 64};

enum class Kept { on_device, in_host, on_disk };

torch::nn::Sequential far_chain() {
  at::manual_seed(4);
  torch::nn::Sequential net;
  for (int i = 0; i < chain_layers; ++i) net->push_back(torch::nn::Linear(chain_width, chain_width));
  net->to(far_device);
  return net;
}

std::vector<at::Tensor> train_far_chain(Kept kept) {
  auto net = far_chain();
  std::optional<Offload> offload;
  if (kept == Kept::in_host) offload.emplace(cpu_offload(net, chain_quarter));
  if (kept == Kept::on_disk) {
    offload.emplace(
        disk_offload(net, testing::folder("far_offload" + std::to_string(mpi::Communicator::world().rank())),
                     {.resident_bytes = chain_quarter.resident_bytes, .page_bytes = chain_quarter.page_bytes}));
  }
  torch::optim::SGD sgd(net->parameters(), 0.01);
  std::vector<at::Tensor> results;
  for (int step = 0; step < 3; ++step) {
    const auto loss =
        at::tanh(net->forward(at::full({2, chain_width}, 0.1 * (step + 1)).to(far_device))).square().sum();
    loss.backward();
    sgd.step();
    sgd.zero_grad();
    results.push_back(loss.detach().to(at::kCPU));
  }
  if (offload) {
    CHECK(offload->counters().pages_written > 0);
    CHECK(offload->counters().pages_read_ahead > 0);
    offload->remove();
  }
  for (const auto& parameter : net->parameters()) results.push_back(parameter.detach().to(at::kCPU));
  return results;
}

}  // namespace

TEST_CASE("a module on the far device trains from the host's memory, and from a file, bit for bit", "[far]") {
  const auto expected = train_far_chain(Kept::on_device);
  for (const auto kept : {Kept::in_host, Kept::on_disk}) {
    const auto actual = train_far_chain(kept);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(testing::same_bits(actual[i], expected[i]));
  }
}

TEST_CASE("the end of a store in page-locked memory waits for the copies from and to it", "[far]") {
  const std::vector<paging::Page> pages = {{.number = 0, .bytes = 64}};
  const auto frame = at::ones({16}).to(far_device);
  const std::span bytes(static_cast<std::byte*>(frame.mutable_data_ptr()), 64);
  {
    paging::PinnedStore store(pages, far_device);
    try {
      const auto unfinished = store.publish(pages[0], bytes);
      throw std::runtime_error("of the program");
    } catch (const std::runtime_error&) {  // so that no other rank waits for it
    }
    CHECK(test::far_copies_to_come() == 1);
  }
  CHECK(test::far_copies_to_come() == 0);
  {
    auto inside = std::make_unique<paging::HostStore>(pages, paging::HostStore::Use::in_frames);
    paging::StagedStore store(std::move(inside), far_device, machine::page_locked);
    try {
      const auto unfinished = store.publish(pages[0], bytes);
      throw std::runtime_error("of the program");
    } catch (const std::runtime_error&) {
    }
    CHECK(test::far_copies_to_come() == 1);
  }
  CHECK(test::far_copies_to_come() == 0);
}

TEST_CASE("an offloaded module uses no more memory of the far device than its budget", "[far]") {
  auto net = far_chain();
  const auto all = test::far_bytes();
  const auto offload = cpu_offload(net, chain_quarter);
  const auto others = test::far_bytes();
  CHECK(others <= all - static_cast<std::int64_t>(chain_layers * chain_layer_bytes));
  const at::NoGradGuard no_grad;
  const auto input = at::ones({1, chain_width}, far_device);
  test::reset_far_peak();
  for (int pass = 0; pass < 3; ++pass) net->forward(input);
  // Activations, and temporary memory of operators, are small here.
  CHECK(test::far_peak() - others <= static_cast<std::int64_t>(chain_quarter.resident_bytes) + 16 * 4 * chain_width);
}
