#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <hortator/bigmodel/offload.hpp>
#include <hortator/error.hpp>
#include <hortator/training/random.hpp>
#include <optional>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "tools/test/checks.hpp"

namespace hortator::tools::installation {
namespace {

constexpr int paged_layers = 8;
constexpr std::int64_t paged_width = 256;
constexpr std::uint64_t paged_layer_bytes = (paged_width * paged_width + paged_width) * 4;
// Smaller than the model, and enough for two layers and one that is read ahead.
constexpr DiskOffloadOptions paged_budget = {.resident_bytes = 4 * paged_layer_bytes, .page_bytes = paged_layer_bytes};

struct TrainedModel {
  std::vector<at::Tensor> numbers = {};  ///< losses, then weights
  OffloadCounters counters = {};
};

TrainedModel train_model(const std::optional<std::filesystem::path>& folder) {
  set_seed(1);
  torch::nn::Sequential net;
  for (int i = 0; i < paged_layers; ++i) {
    net->push_back(torch::nn::Linear(paged_width, paged_width));
    net->push_back(torch::nn::ReLU());
  }
  std::optional<Offload> offload;
  if (folder) offload.emplace(disk_offload(net, *folder, paged_budget));
  torch::optim::SGD sgd(net->parameters(), 0.1);
  TrainedModel trained;
  for (int step = 0; step < 3; ++step) {
    const auto loss = net->forward(at::randn({8, paged_width})).square().mean();
    loss.backward();
    sgd.step();
    sgd.zero_grad();
    trained.numbers.push_back(loss.detach());
  }
  if (offload) {
    trained.counters = offload->counters();
    offload->remove();
  }
  for (const auto& parameter : net->parameters()) trained.numbers.push_back(parameter.detach());
  return trained;
}

}  // namespace

std::string check_paging(const std::filesystem::path& folder) {
  const auto resident = train_model({});
  const auto paged = train_model(folder / "pages");
  for (std::size_t i = 0; i < resident.numbers.size(); ++i) {
    if (!at::equal(resident.numbers[i], paged.numbers[i]))
      throw Error({.what = "A model trained from disk differs from one trained in memory"});
  }
  const auto& counters = paged.counters;
  if (counters.pages_read < paged_layers || counters.pages_written == 0 ||
      counters.peak_resident_bytes > paged_budget.resident_bytes)
    throw Error({.what = text::concat("Unexpected use of the disk: ", counters.pages_read, " pages read, ",
                                      counters.pages_written, " written, ", units::bytes(counters.peak_resident_bytes),
                                      " in memory at most")});
  return text::concat("trained in ", units::bytes(counters.peak_resident_bytes), " of memory, ",
                      units::bytes(counters.offloaded_bytes), " on disk, bitwise as in memory");
}

}  // namespace hortator::tools::installation
