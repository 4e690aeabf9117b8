#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/script.h>
#include <torch/serialize.h>

#include <filesystem>
#include <fstream>
#include <hortator/bigmodel/offload.hpp>
#include <hortator/error.hpp>
#include <optional>

#include "fixtures.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/storage_memory.hpp"
#include "machine/device/recording.hpp"
#include "machine/memory/recycling_allocator.hpp"
#include "support/catch.hpp"
#include "unit/checkpoint/file_limit.hpp"

namespace hortator {
namespace {

using testing::folder;
using testing::same_bits;

torch::nn::Sequential make_net(int layers = 6, std::int64_t width = 64) {
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i) {
    net->push_back(torch::nn::Linear(width, width));
    net->push_back(torch::nn::ReLU());
  }
  return net;
}

const DiskOffloadOptions small_pages = {.resident_bytes = 60'000, .page_bytes = 20'000};

bool is_absent(const at::Tensor& tensor) { return interception::memory_of(tensor.storage()) == nullptr; }

}  // namespace

TEST_CASE("A module on disk computes the same as in memory", "[offload]") {
  const auto disk = folder("offload");
  auto net = make_net();
  const auto input = at::randn({8, 64});
  const auto expected = net->forward(input);
  auto offload = disk_offload(net, disk, small_pages);
  for (int pass = 0; pass < 3; ++pass) CHECK(same_bits(net->forward(input), expected));
  const auto counters = offload.counters();
  CHECK(counters.offloaded_bytes == 6 * (64 * 64 + 64) * 4);
  CHECK(counters.peak_resident_bytes <= 60'000);
  CHECK(counters.pages_read > 6);
  CHECK(counters.pages_written == 0);
  CHECK(std::filesystem::is_empty(disk));  // the file has no name, so it cannot remain
}

TEST_CASE("A module on disk trains the same as in memory", "[offload]") {
  const auto train = [](bool on_disk) {
    at::manual_seed(5);
    auto net = make_net();
    std::optional<Offload> offload;
    if (on_disk) offload.emplace(disk_offload(net, folder("offload"), small_pages));
    torch::optim::AdamW optimizer(net->parameters(), 1e-2);
    std::vector<at::Tensor> results;
    for (int step = 0; step < 5; ++step) {
      const auto loss = net->forward(at::randn({8, 64})).square().mean();
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      results.push_back(loss.detach());
    }
    if (offload) {
      CHECK(offload->counters().pages_written > 0);
      offload->remove();
      CHECK(offload->counters().resident_bytes == 0);
    }
    for (const auto& parameter : net->parameters()) results.push_back(parameter.detach());
    return results;
  };
  const auto expected = train(false);
  const auto actual = train(true);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(actual[i], expected[i]));
}

TEST_CASE("The destructor puts the parameters back into memory", "[offload]") {
  auto net = make_net();
  const auto before = net->parameters().front().detach().clone();
  {
    const auto offload = disk_offload(net, folder("offload"), small_pages);
    CHECK(is_absent(net->parameters().front()));
  }
  CHECK_FALSE(interception::carries_key(net->parameters().front()));
  CHECK(same_bits(net->parameters().front(), before));
  CHECK_NOTHROW(net->parameters().front().data_ptr<float>());
  CHECK(machine::RecyclingAllocator::counters().kept_bytes == 0);
}

TEST_CASE("An exception that ends the scope does not wait for the disk", "[offload]") {
  auto net = make_net();
  try {
    const auto offload = disk_offload(net, folder("offload"), small_pages);
    throw std::runtime_error("something else");
  } catch (const std::runtime_error&) {
  }
  CHECK_THROWS_WITH(net->forward(at::randn({1, 64})), ContainsSubstring("has no values"));
}

TEST_CASE("Parameters and modules in keep_resident stay in memory", "[offload]") {
  auto net = make_net();
  auto options = small_pages;
  options.keep_resident = {"0", "2.weight"};
  const auto offload = disk_offload(net, folder("offload"), options);
  const auto named = net->named_parameters();
  CHECK_FALSE(is_absent(named["0.weight"]));
  CHECK_FALSE(is_absent(named["0.bias"]));
  CHECK_FALSE(is_absent(named["2.weight"]));
  CHECK(is_absent(named["2.bias"]));
  CHECK(is_absent(named["10.weight"]));
  options.keep_resident = {"2.wieght"};
  auto other = make_net();
  CHECK_THROWS_WITH(disk_offload(other, folder("offload"), options), ContainsSubstring("did you mean '2.weight'?"));
}

TEST_CASE("Buffers are offloaded only on request", "[offload]") {
  torch::nn::BatchNorm1d norm(8);
  const auto input = at::randn({4, 8});
  auto reference = std::dynamic_pointer_cast<torch::nn::BatchNorm1dImpl>(norm->clone());
  {
    const auto offload = disk_offload(norm, folder("offload"));
    CHECK(is_absent(norm->weight));
    CHECK_FALSE(is_absent(norm->running_mean));
  }
  {
    const auto offload = disk_offload(norm, folder("offload"), {.resident_bytes = 1, .offload_buffers = true});
    CHECK(is_absent(norm->running_mean));
    CHECK(same_bits(norm->forward(input), reference->forward(input)));
    CHECK(is_absent(norm->running_mean));
  }
  CHECK(same_bits(norm->running_mean, reference->running_mean));
  CHECK(same_bits(norm->num_batches_tracked, reference->num_batches_tracked));
}

TEST_CASE("A disk that is too small leaves the module unchanged", "[offload]") {
  auto net = make_net();
  const auto input = at::randn({8, 64});
  const auto expected = net->forward(input);
  const auto disk = folder("offload");
  {
    const testing::FileLimit limit(50'000);
    CHECK_THROWS_WITH(disk_offload(net, disk, small_pages), ContainsSubstring("bytes for"));
  }
  CHECK(same_bits(net->forward(input), expected));
  CHECK_FALSE(interception::carries_key(net->parameters().front()));
  CHECK(std::filesystem::is_empty(disk));
}

TEST_CASE("A folder that cannot be created is named in the error", "[offload]") {
  auto net = make_net();
  const auto disk = folder("offload");
  std::ofstream(disk / "taken") << "a file";
  CHECK_THROWS_WITH(disk_offload(net, disk / "taken" / "below"), ContainsSubstring("taken"));
}

TEST_CASE("A pin keeps pointers valid, and keeps what is written through them", "[offload]") {
  auto net = make_net();
  auto offload = disk_offload(net, folder("offload"), small_pages);
  const auto weight = net->named_parameters()["4.weight"];
  {
    const Pin pin(weight, Pin::For::writing);
    weight.data_ptr<float>()[3] = 42;
  }
  net->forward(at::randn({1, 64}));
  net->forward(at::randn({1, 64}));
  offload.remove();
  CHECK(weight.data_ptr<float>()[3] == 42);
}

TEST_CASE("A module can be saved within a pin of its parameters", "[offload]") {
  auto net = make_net();
  const auto file = folder("offload_saved") / "net.pt";
  const auto offload = disk_offload(net, folder("offload"), small_pages);
  if constexpr (interception::AccessCanBeForbidden<c10::StorageImpl>) CHECK_THROWS(torch::save(net, file.string()));
  {
    const Pin pin(net->parameters());
    torch::save(net, file.string());
  }
  auto loaded = make_net();
  torch::load(loaded, file.string());
  CHECK(same_bits(loaded->parameters().back(), net->parameters().back().detach().clone()));
}

TEST_CASE("TorchScript modules are offloaded", "[offload]") {
  torch::jit::Module net("net");
  net.register_parameter("weight", at::randn({32, 32}), false);
  net.register_parameter("bias", at::randn({32}), false);
  net.define("def forward(self, x):\n  return torch.relu(torch.matmul(x, self.weight) + self.bias)\n");
  const auto input = at::randn({4, 32});
  const auto expected = net.forward({input}).toTensor();
  auto offload = disk_offload(net, folder("offload"), {.resident_bytes = 1});
  CHECK(is_absent(net.attr("weight").toTensor()));
  for (int pass = 0; pass < 3; ++pass) CHECK(same_bits(net.forward({input}).toTensor(), expected));
  offload.remove();
  CHECK(same_bits(net.forward({input}).toTensor(), expected));
}

TEST_CASE("parameters of an offloaded module are refused while a step is recorded on the device") {
  auto net = make_net(2);
  const auto x = at::ones({1, 64});
  const auto expected = net->forward(x);
  auto offload = cpu_offload(net);
  {
    const machine::RecordingMark recording;
    CHECK_THROWS_WITH(net->forward(x), ContainsSubstring("offloaded module was used in a step that is recorded"));
  }
  CHECK(same_bits(net->forward(x), expected));
}

TEST_CASE("In the host's memory nothing is copied", "[offload]") {
  auto net = make_net();
  const auto input = at::randn({8, 64});
  const auto expected = net->forward(input);
  auto offload = cpu_offload(net);
  CHECK(same_bits(net->forward(input), expected));
  CHECK(offload.counters().peak_resident_bytes == 0);  // no memory but the parameters' own
  net->parameters().front().detach().add_(1);
  const auto changed = net->forward(input);
  offload.remove();
  CHECK(same_bits(net->forward(input), changed));
}

TEST_CASE("A module cannot be offloaded twice", "[offload]") {
  auto net = make_net();
  const auto offload = disk_offload(net, folder("offload"), small_pages);
  CHECK_THROWS_AS(cpu_offload(net), UsageError);
  CHECK_NOTHROW(net->forward(at::randn({1, 64})));
}

TEST_CASE("Invalid options are refused", "[offload]") {
  auto net = make_net();
  CHECK_THROWS_AS(disk_offload(net, folder("offload"), {.page_bytes = 0}), UsageError);
  CHECK_THROWS_AS(disk_offload(net, folder("offload"), {.read_ahead_pages = -1}), UsageError);
}

TEST_CASE("Parameters are distributed over the pages again by the order of use", "[offload]") {
  // Declared in one order, used in another: neighbours in the module are used at different times.
  std::vector<torch::nn::Linear> layers;
  torch::nn::Sequential named;
  for (int i = 0; i < 8; ++i) layers.emplace_back(64, 64);
  for (const int i : {0, 4, 1, 5, 2, 6, 3, 7}) named->push_back(layers[static_cast<std::size_t>(i)]);
  const auto forward = [&](at::Tensor x) {
    for (auto& layer : layers) x = layer(x);
    return x;
  };
  const auto input = at::randn({2, 64});
  const auto expected = forward(input);
  auto offload =
      disk_offload(named, folder("offload"), {.resident_bytes = 80'000, .page_bytes = 40'000, .read_ahead_pages = 0});
  const at::NoGradGuard no_grad;
  forward(input);
  forward(input);
  const auto before = offload.counters().pages_read;
  CHECK(same_bits(forward(input), expected));
  CHECK(offload.counters().pages_read - before <= 4);  // two layers a page; more in the order of the module
}

}  // namespace hortator
