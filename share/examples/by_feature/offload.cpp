// Offload: train a model that does not fit into memory, with parameters and moments on the node's disk.
//
// Parameters are in memory only while operators use them: they are read ahead in the order of the last step, and at
// most --resident-kib of them stay. construct_deferred() constructs the model without memory; its parameters get their
// values one page after the other, on disk. The result is that of training in memory:
//
//     hortator launch -n 2 offload --scratch /tmp
//     hortator launch -n 2 offload --in-memory
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "offload", "trains with parameters and moments on disk");
    const std::filesystem::path scratch =
        options.text("scratch", std::filesystem::temp_directory_path(), "folder on a disk of the node");
    const auto resident = options.number("resident-kib", 256, "KiB of parameters, and of moments, in memory");
    const bool in_memory = options.flag("in-memory", "do not offload, for comparison");
    const auto width = options.number("width", 128, "width of the network");
    const auto steps = options.number("steps", 60, "steps of the training");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::ZeroConfig zero{.stage = 3};
    if (!in_memory) {
      zero.offload_optimizer = scratch;
      zero.offload_parameters = scratch;
      zero.resident_bytes = static_cast<std::uint64_t>(resident) << 10;
    }
    hortator::Accelerator accelerator({.zero = zero, .project = {.dir = run_dir}});
    hortator::set_seed(7);
    auto net = hortator::construct_deferred([&] { return toy::Net(width, 8); });
    std::int64_t numbers = 0;
    for (const auto& parameter : net->parameters()) numbers += parameter.numel();
    torch::optim::AdamW adamw(net->parameters(), 1e-3);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(8192), {.batch_size = 32, .shuffle = true}));

    std::int64_t step = 0;
    for (auto& batch : train) {
      accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
      optimizer.step();
      optimizer.zero_grad();
      if (++step == steps) break;
    }
    accelerator.print(numbers / 256, " KiB of parameters, ",
                      in_memory ? "all in memory" : std::to_string(resident) + " KiB in memory");
    toy::report(accelerator, model);
  });
}
