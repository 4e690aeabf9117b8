// Parameters in the host's memory that are copied to the device for use.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "../accelerator/fixtures.hpp"
#include "../exported/stored_models.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

using namespace hortator;

namespace {

constexpr int offload_layers = 16;
constexpr std::int64_t offload_width = 512;
constexpr std::uint64_t layer_bytes = 4 * (offload_width * offload_width + offload_width);

torch::nn::Sequential deep_net() {
  torch::nn::Sequential net;
  for (int i = 0; i < offload_layers; ++i) {
    net->push_back(torch::nn::Linear(offload_width, offload_width));
    net->push_back(torch::nn::ReLU());
  }
  net->to(test::accelerator_type);
  return net;
}

const CpuOffloadOptions quarter = {.resident_bytes = offload_layers * layer_bytes / 4, .page_bytes = layer_bytes / 2};

enum class Kept { on_device, in_host, on_disk };

std::vector<at::Tensor> train_deep_net(Kept kept) {
  at::manual_seed(5);
  auto net = deep_net();
  std::optional<Offload> offload;
  if (kept == Kept::in_host) offload.emplace(cpu_offload(net, quarter));
  if (kept == Kept::on_disk) {
    offload.emplace(disk_offload(net, "folder_gpu_offload",
                                 {.resident_bytes = quarter.resident_bytes, .page_bytes = quarter.page_bytes}));
  }
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(1e-2).momentum(0.9));
  std::vector<at::Tensor> results;
  for (int step = 0; step < 6; ++step) {
    const auto loss = net->forward(at::randn({8, offload_width}, test::accelerator_type)).square().mean();
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    results.push_back(loss.detach());
  }
  if (offload) {
    CHECK(offload->counters().pages_written > 0);
    offload->remove();
  }
  for (const auto& parameter : net->parameters()) results.push_back(parameter.detach());
  return results;
}

/// The parameters of an exported model after some steps.
std::vector<at::Tensor> train_exported(Kept kept) {
  Accelerator accelerator({.log_with = {}});
  auto net = exported_module(stored_models::file("attention"));
  net->to(test::accelerator_type);
  std::optional<Offload> offload;
  if (kept == Kept::in_host) offload.emplace(cpu_offload(net, {.resident_bytes = 256, .page_bytes = 128}));
  if (kept == Kept::on_disk)
    offload.emplace(disk_offload(net, "folder_gpu_exported", {.resident_bytes = 256, .page_bytes = 128}));
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto input = stored_models::tensors("attention").get("input_0").to(test::accelerator_type);
  for (int step = 0; step < 3; ++step) {
    accelerator.backward(model(input + 0.1 * step)[0].square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  if (offload) {
    CHECK(offload->counters().pages_written > 0);
    offload->remove();
  }
  std::vector<at::Tensor> results;
  for (const auto& parameter : net->parameters()) results.push_back(parameter.detach().cpu());
  return results;
}

}  // namespace

TEST_CASE("an offloaded module computes as before, within a quarter of its memory, repeatedly") {
  if (!test::has_gpu()) return;
  auto net = deep_net();
  const at::NoGradGuard no_grad;
  const auto input = at::randn({64, offload_width}, test::accelerator_type);
  const auto expected = net->forward(input);
  const auto offload = cpu_offload(net, quarter);
  bool equal = true;
  for (int pass = 0; pass < 20; ++pass) equal = equal && at::equal(net->forward(input), expected);
  CHECK(equal);
  const auto counters = offload.counters();
  CHECK(counters.offloaded_bytes == offload_layers * layer_bytes);
  CHECK(counters.peak_resident_bytes <= quarter.resident_bytes);
  CHECK(counters.pages_read_ahead > 0);
}

TEST_CASE("training from host memory or a file is bitwise equal to training on the device") {
  if (!test::has_gpu()) return;
  const auto expected = train_deep_net(Kept::on_device);
  for (const auto kept : {Kept::in_host, Kept::on_disk}) {
    const auto actual = train_deep_net(kept);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(at::equal(actual[i], expected[i]));
  }
}

TEST_CASE("an exported model in host memory or a file trains as on the device") {
  if (!test::has_gpu()) return;
  const auto expected = train_exported(Kept::on_device);
  for (const auto kept : {Kept::in_host, Kept::on_disk}) {
    const auto actual = train_exported(kept);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(at::equal(actual[i], expected[i]));
  }
}

TEST_CASE("a module that cannot be paged throws with the parameter's name") {
  if (!test::has_gpu()) return;
  torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Linear(4, 4));
  net->to(test::accelerator_type);
  net[1]->to(at::kCPU);
  CHECK_THROWS_WITH(disk_offload(net, "folder_gpu_offload"), ContainsSubstring("on one device"));
  CHECK_THROWS_WITH(cpu_offload(net), ContainsSubstring("on one device"));
}
