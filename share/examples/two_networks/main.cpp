// A GAN: two models, two optimizers, one accelerator. While one trains, the other's gradients are not reduced.
//
//     hortator launch -n 2 two_networks --epochs 24
#include <torch/optim/adam.h>

#include <hortator/hortator.hpp>

#include "../support/options.hpp"
#include "gan.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "two_networks", "trains a generator of points on a circle, and its critic");
    const auto epochs = options.number("epochs", 24, "passes over the data");
    const auto batch_size = options.number("batch-size", 64, "points of a rank in a batch");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::set_seed(1);
    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    gan::Generator g;
    gan::Critic d;
    torch::optim::Adam adam_g(g->parameters(), torch::optim::AdamOptions(1e-3).betas({0.5, 0.999}));
    torch::optim::Adam adam_d(d->parameters(), torch::optim::AdamOptions(1e-3).betas({0.5, 0.999}));
    auto [generator, critic, optimizer_g, optimizer_d, loader] = accelerator.prepare(
        g, d, adam_g, adam_d, hortator::data_loader(gan::Circle(), {.batch_size = batch_size, .shuffle = true}));

    while (loader.epoch() < epochs) {
      for (auto& batch : accelerator.progress(loader, "gan")) {
        auto fake = generator(torch::randn({batch.data.size(0), gan::noise}, accelerator.device()));

        auto loss_d = gan::critic_loss(critic(batch.data), critic(fake.detach()));
        accelerator.backward(loss_d);
        optimizer_d.step();
        optimizer_d.zero_grad();

        auto critic_no_sync = accelerator.no_sync(critic);
        auto loss_g = gan::generator_loss(critic(fake));
        accelerator.backward(loss_g);
        optimizer_g.step();
        optimizer_g.zero_grad();
        optimizer_d.zero_grad();
        accelerator.log({{"critic", loss_d}, {"generator", loss_g}});
      }
    }
    torch::NoGradGuard no_grad;
    const auto radius = generator(torch::randn({512, gan::noise}, accelerator.device())).norm(2, 1);
    const auto mean = accelerator.gather(radius).mean();
    if (accelerator.is_main_process()) accelerator.print("mean radius of generated points: ", mean.item<double>());
  });
}
