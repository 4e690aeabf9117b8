// Who had the memory when most of it was in use.
#include "accelerator/rehearsal/memory_at_peak.hpp"

#include <algorithm>

#include "accelerator/training/training.hpp"
#include "machine/shapes/counted_memory.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

TEST_CASE("the memory of the peak is counted by owner, and the rest by the operator that made it") {
  machine::count_memory(machine::CountedMemory::used);
  Accelerator accelerator({.cpu = true});
  test::Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  accelerator.backward(model(at::ones({2, 3})).sum());
  optimizer.step();
  constexpr std::uint64_t large = std::uint64_t{64} << 20;  // more than all else: this is the peak
  {
    const machine::MemoryMaker maker("planted");
    const auto batch = at::zeros({static_cast<std::int64_t>(large)}, at::kByte);
    const auto twice = batch + batch;
  }
  const auto peak = accelerator::peak_by_owner(accelerator::Training::of(accelerator));
  constexpr std::uint64_t parameters = 4 * (3 * 4 + 4 + 4 + 1), tensors = 4, line = 64;
  const auto is_near = [&](std::uint64_t bytes, std::uint64_t expected) {  // allocations are whole lines
    return bytes >= expected && bytes <= expected + tensors * 2 * line;
  };
  CHECK(is_near(peak.parameters, parameters));
  CHECK(is_near(peak.optimizers, 2 * parameters));
  CHECK(peak.gradients >= parameters);
  CHECK(peak.buffers >= 8);
  CHECK(peak.activations >= 2 * large);
  CHECK(peak.total >= 2 * large + 4 * parameters);
  CHECK(peak.parameters + peak.gradients + peak.optimizers + peak.activations <= peak.total);
  const auto sum =
      std::ranges::find(peak.activations_by_operator, "planted", &accelerator::PeakByOwner::ByOperator::name);
  REQUIRE(sum != peak.activations_by_operator.end());
  CHECK(sum->largest == large);
  CHECK(sum->bytes == 2 * large);
  CHECK(std::ranges::is_sorted(peak.activations_by_operator, std::greater(),
                               &accelerator::PeakByOwner::ByOperator::bytes));
}
