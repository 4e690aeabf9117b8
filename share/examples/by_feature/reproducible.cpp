// Reproducible runs: bitwise the same model on any number of ranks.
//
// With reproducible = true, each step has virtual_shards batches, however many ranks compute them. Gradients are summed
// in an order that does not depend on the number of ranks, and random numbers (here: dropout) depend on seed, step and
// shard only. The number of ranks must divide virtual_shards by a power of two.
//
//     hortator launch -n 1 reproducible --shards 4
//     hortator launch -n 2 reproducible --shards 4      prints the same bits
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <cstring>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>
#include <ios>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

/// FNV-1a over the bytes of all parameters.
std::uint64_t hash_of(const hortator::ModelBase& model) {
  std::uint64_t hash = 14695981039346656037U;
  for (const auto& parameter : model.parameters()) {
    const auto host = parameter.detach().cpu().contiguous();
    std::vector<unsigned char> bytes(host.nbytes());
    std::memcpy(bytes.data(), host.const_data_ptr(), bytes.size());
    for (const auto byte : bytes) hash = (hash ^ byte) * 1099511628211U;
  }
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "reproducible", "gives the same bits on any number of ranks");
    const auto shards = static_cast<int>(options.number("shards", 8, "batches of a step, over all ranks"));
    const bool plain = options.flag("plain", "train as usual, for comparison");
    const auto epochs = options.number("epochs", 3, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.reproducible = !plain, .virtual_shards = shards, .project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 8, .shuffle = true}));

    while (train.epoch() < epochs) {
      for (auto& batch : train) {
        const auto blurred = at::dropout(batch.data, 0.1, /*train=*/true);
        accelerator.backward(at::cross_entropy_loss(model(blurred), batch.target));
        optimizer.step();  // does nothing until this rank has computed all its shards of the step
        optimizer.zero_grad();
      }
    }
    std::ostringstream bits;
    bits << std::hex << hash_of(model);
    accelerator.print("parameters ", bits.str());
    toy::report(accelerator, model);
  });
}
