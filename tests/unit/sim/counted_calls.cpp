// What the tests with the label gpu count by replacing functions of the CUDA runtime.
#include "../gpu/counted_calls.hpp"

#include "support/sim/sim.hpp"

namespace hortator::test {

DeviceCalls device_calls() {
  const auto counts = sim::counts();
  return {.waits = static_cast<long>(counts.host_waits), .device_to_host = static_cast<long>(counts.copies_to_host)};
}

}  // namespace hortator::test
