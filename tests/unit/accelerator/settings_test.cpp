// Environment variables that only some ranks have.
#include <cstdlib>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("an environment variable that only some ranks have is an error on all ranks that names it") {
  const State state;
  if (state.num_processes() == 1) return;
  for (const auto* name : {"HORTATOR_ZERO_STAGE", "HORTATOR_GRADIENT_ACCUMULATION_STEPS"}) {
    if (state.is_last_process()) setenv(name, "2", 1);
    CHECK_THROWS_WITH(Accelerator(), ContainsSubstring(name) && ContainsSubstring("differs between ranks"));
    unsetenv(name);
  }
  CHECK_NOTHROW(Accelerator());
}
