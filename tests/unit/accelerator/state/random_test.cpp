#include <ATen/CPUGeneratorImpl.h>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

TEST_CASE("synchronize_rng_states makes all ranks draw rank 0's numbers") {
  Accelerator accelerator;
  const auto draw = [&] { return accelerator.gather(at::rand({1}, at::kDouble)); };
  set_seed(5, {.device_specific = true});
  const auto apart = draw();
  for (int rank = 1; rank < accelerator.num_processes(); ++rank) CHECK_FALSE(at::equal(apart[rank], apart[0]));
  set_seed(5, {.device_specific = true});
  accelerator.synchronize_rng_states();
  CHECK(at::equal(draw(), apart[0].expand({accelerator.num_processes()})));
}

TEST_CASE("synchronize_rng_states of given generators does not change the others") {
  Accelerator accelerator;
  set_seed(5, {.device_specific = true});
  const auto before = at::globalContext().defaultGenerator(at::kCPU).get_state();
  auto own = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(accelerator.process_index()));
  accelerator.synchronize_rng_states({own});
  const auto drawn = accelerator.gather(at::rand({1}, own, at::kDouble));
  CHECK((drawn == drawn[0]).all().item<bool>());
  CHECK(at::equal(at::globalContext().defaultGenerator(at::kCPU).get_state(), before));
}
