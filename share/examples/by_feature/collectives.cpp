// Collectives without an Accelerator: ranks share work other than training, and combine the results.
//
// State knows the ranks and splits values among them; Collectives sends tensors, structures of tensors and other
// objects between them. Neither needs a model. The functions at the end change structures on one rank.
//
//     hortator launch -n 2 collectives --samples 301
#include <ATen/ATen.h>

#include <hortator/parallel/split_between_processes.hpp>
#include <hortator/run.hpp>
#include <hortator/training/collectives.hpp>
#include <hortator/training/structures.hpp>
#include <numeric>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

/// What a rank finds out about its points.
struct Statistics {
  at::Tensor count = at::zeros({3});       ///< points of each ring
  at::Tensor radius_sum = at::zeros({3});  ///< sum of their distances from the origin
  auto fields() { return std::tie(count, radius_sum); }
};

Statistics statistics_of(const std::vector<std::int64_t>& samples) {
  const toy::Rings rings(1 << 16);
  Statistics found;
  for (const auto sample : samples) {
    const auto [point, ring] = rings.get(sample);
    found.count[ring] += 1;
    found.radius_sum[ring] += point.norm();
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "collectives", "combines statistics of all ranks without an Accelerator");
    const auto count = options.number("samples", 301, "points to look at");
    options.run_dir();
    if (options.help()) return;

    hortator::State state;
    hortator::Collectives collectives(state);
    std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
    std::iota(samples.begin(), samples.end(), 0);
    const auto mine = state.split_between_processes(samples);
    const auto all = collectives.reduce(statistics_of(mine));  // a struct of tensors, in one message
    state.print("points: ", all.count.sum().item<std::int64_t>());
    state.print("mean radii: ", (all.radius_sum / all.count).max().item<double>(), " at most");

    const auto shares = collectives.gather_object(std::vector<std::size_t>{mine.size()});
    state.print("of rank 0: ", shares.front());

    const auto halves = hortator::convert_to_fp32(std::vector<at::Tensor>{at::ones({2}, at::kHalf)});
    state.print("type: ", hortator::send_to_device(halves, state.device()).front().scalar_type());
  });
}
