#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <hortator/datasets/tensor_dataset.hpp>
#include <hortator/training/random.hpp>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "mpi/agree.hpp"
#include "runtime/world.hpp"
#include "tools/test/checks.hpp"

namespace hortator::tools::installation {
namespace {

constexpr std::int64_t features = 8;
constexpr std::int64_t samples_per_rank = 64;
constexpr std::int64_t epochs = 40;
constexpr double learning_rate = 0.1;
constexpr double max_loss = 1e-6;

}  // namespace

std::string check_loader(Accelerator& accelerator) {
  // The samples never divide evenly by two or more ranks.
  const auto count = samples_per_rank * accelerator.num_processes() + 1;
  auto loader = accelerator.prepare(
      data_loader(tensor_dataset(at::arange(count)), {.batch_size = 4, .shuffle = true, .seed = 1}));
  std::vector<at::Tensor> seen;
  for (const auto& batch : loader) seen.push_back(accelerator.gather_for_metrics(batch));
  const auto all = std::get<0>(at::cat(seen).sort());
  require_on_all_ranks(accelerator.world().comm(), at::equal(all.cpu(), at::arange(count)),
                       text::concat("A pass over ", count, " samples does not return each sample exactly once"));
  return text::concat("each of ", count, " samples once");
}

std::string check_training(Accelerator& accelerator) {
  set_seed(1);
  // A linear function without noise: training reaches a loss of zero on any number of ranks.
  const auto slope = at::arange(features, at::TensorOptions(at::kFloat)).sub(3).unsqueeze(1);
  const auto x = at::randn({samples_per_rank * accelerator.num_processes(), features});
  const auto y = at::matmul(x, slope).add(0.5);

  torch::nn::Linear net(features, 1);
  torch::optim::SGD sgd(net->parameters(), learning_rate);
  auto [model, optimizer, loader] =
      accelerator.prepare(net, sgd, data_loader(tensor_dataset(x, y), {.batch_size = 16, .shuffle = true, .seed = 1}));
  double loss = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const auto& batch : loader) {
      const auto error = at::mse_loss(model(batch.data), batch.target);
      accelerator.backward(error);
      optimizer.step();
      optimizer.zero_grad();
      loss = error.item<double>();
    }
  }
  const auto& comm = accelerator.world().comm();
  require_on_all_ranks(comm, loss < max_loss, text::concat("The loss is ", loss, ", expected less than ", max_loss));
  const auto weight = net->weight.detach().cpu().contiguous();
  require_on_all_ranks(comm, at::allclose(weight.t(), slope, 1e-3, 1e-3),
                       "The trained weights differ from the known solution");
  const std::string_view bytes(static_cast<const char*>(weight.const_data_ptr()), weight.nbytes());
  mpi::same_on_all(comm, std::to_string(core::hash(bytes)), "the trained weights");
  accelerator.free_memory();
  return text::concat("loss ", units::number(loss), ", the same weights on ", text::count(comm.size(), "rank"));
}

}  // namespace hortator::tools::installation
