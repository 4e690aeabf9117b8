// What the environment says to some ranks and not to others.
#include <cstdlib>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("a variable that only some ranks have is an error on all that names what differs") {
  const State state;
  if (state.num_processes() == 1) return;
  for (const auto* name : {"HORTATOR_ZERO_STAGE", "HORTATOR_GRADIENT_ACCUMULATION_STEPS"}) {
    if (state.is_last_process()) setenv(name, "2", 1);
    CHECK_THROWS_WITH(Accelerator(), ContainsSubstring(name) && ContainsSubstring("differs between ranks"));
    unsetenv(name);
  }
  CHECK_NOTHROW(Accelerator());
}
