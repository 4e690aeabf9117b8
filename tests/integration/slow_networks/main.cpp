// Trains a small network on digits, over and over: with averaged gradients, and in the ways that send less. Prints the
// validation loss and accuracy of each, as lines of JSON. The file has 785 bytes for each image: pixels and label.
//
//     mpirun -n 2 slow_networks digits.bin
#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <array>
#include <fstream>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <hortator/parallel/local_sgd.hpp>
#include <hortator/parallel/outer_optimizer.hpp>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>
#include <hortator/training/schedules.hpp>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

namespace {

constexpr std::int64_t pixels = 784;
constexpr std::int64_t epochs = 40;
constexpr std::int64_t inner_steps = 64;
constexpr std::int64_t batch = 8;  // of a rank

struct Digits {
  at::Tensor images, labels;

  std::int64_t size() const { return images.size(0); }
  hortator::Example<> get(std::int64_t i) const { return {images[i], labels[i]}; }
};

/// Every fifth image is for validation.
std::array<Digits, 2> read_digits(const char* file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const auto rows = static_cast<std::int64_t>(bytes.size()) / (pixels + 1);
  if (rows == 0) throw hortator::Error({.what = std::string("No digits in ") + file});
  const auto table = at::from_blob(const_cast<char*>(bytes.data()), {rows, pixels + 1}, at::kByte).clone();
  const auto is_held_out = at::arange(rows).remainder(5).eq(0);
  const auto select = [&](const at::Tensor& which) {
    const auto chosen = table.index({which});
    return Digits{.images = chosen.narrow(1, 0, pixels).to(at::kFloat) / 255,
                  .labels = chosen.select(1, pixels).to(at::kLong)};
  };
  return {select(is_held_out.logical_not()), select(is_held_out)};
}

struct NetImpl : torch::nn::Module {
  NetImpl() : hidden(register_module("hidden", torch::nn::Linear(pixels, 64))) {}
  at::Tensor forward(const at::Tensor& images) { return last(at::relu(hidden(images))); }

  torch::nn::Linear hidden;
  torch::nn::Linear last = register_module("last", torch::nn::Linear(64, 10));
};
TORCH_MODULE(Net);

enum class Way { all_reduce, power_sgd, diloco, sparse_loco };
constexpr std::array<std::string_view, 4> names = {"all_reduce", "power_sgd", "diloco", "sparse_loco"};

hortator::AcceleratorOptions options_of(Way way) {
  hortator::AcceleratorOptions options;
  if (way == Way::power_sgd) {
    options.ddp.comm_hook = hortator::DDPCommunicationHookType::power_sgd;
    options.ddp.power_sgd = {.rank = 4, .start_step = 10};
  }
  return options;
}

void print_quality(hortator::Accelerator& accelerator, hortator::Model<Net>& model, const Digits& held_out, Way way,
                   int seed) {
  const at::NoGradGuard no_grad;
  model.eval();
  const auto scores = model(held_out.images);
  const auto right = scores.argmax(1).eq(held_out.labels).to(at::kDouble).mean().item<double>();
  if (!accelerator.is_main_process()) return;
  std::cout << R"({"way": ")" << names[static_cast<std::size_t>(way)] << R"(", "seed": )" << seed << R"(, "loss": )"
            << at::cross_entropy_loss(scores, held_out.labels).item<double>() << R"(, "right": )" << right << "}"
            << std::endl;
}

void train(const std::array<Digits, 2>& digits, Way way, int seed) {
  hortator::Accelerator accelerator(options_of(way));
  hortator::set_seed(static_cast<std::uint64_t>(seed));
  Net net;
  torch::optim::AdamW adamw(net->parameters(), torch::optim::AdamWOptions(3e-3).weight_decay(0.1));
  auto [model, optimizer, loader, schedule] = accelerator.prepare(
      net, adamw, hortator::data_loader(digits[0], {.batch_size = batch, .shuffle = true}),
      hortator::cosine_warmup(adamw, {.warmup_steps = 40, .total_steps = epochs * digits[0].size() / batch}));
  std::optional<hortator::OuterOptimizer> outer;
  if (way == Way::diloco || way == Way::sparse_loco) {
    outer.emplace(accelerator, model,
                  hortator::OuterOptimizerOptions{.wire = way == Way::sparse_loco ? hortator::OuterWire::sparse
                                                                                  : hortator::OuterWire::whole});
  }
  {
    hortator::LocalSGD local_sgd(
        accelerator, model, {.steps = inner_steps, .enabled = outer.has_value(), .outer = outer ? &*outer : nullptr});
    while (loader.epoch() < epochs) {
      for (auto& batch : loader) {
        accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
        optimizer.step();
        schedule.step();
        local_sgd.step();
        optimizer.zero_grad();
      }
    }
  }
  print_quality(accelerator, model, digits[1], way, seed);
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    if (argc != 2) throw hortator::UsageError({.what = "Expected the file of digits"});
    const auto digits = read_digits(argv[1]);
    for (int seed = 1; seed <= 5; ++seed) {
      for (const auto way : {Way::all_reduce, Way::power_sgd}) train(digits, way, seed);
    }
    for (int seed = 1; seed <= 3; ++seed) {
      for (const auto way : {Way::diloco, Way::sparse_loco}) train(digits, way, seed);
    }
  });
}
