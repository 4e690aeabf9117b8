#include "step/gradients/accumulation.hpp"

#include <hortator/error.hpp>
#include <string>

#include "support/catch.hpp"

using namespace hortator;
using step::Accumulation;

namespace {

// The micro-steps of `epochs` passes over `batches` batches; 1 marks a step with synchronised gradients.
std::string syncs(Accumulation& accumulation, int batches, int epochs) {
  std::string marks;
  for (int step = 0; step < batches * epochs; ++step) {
    accumulation.begin_micro_step(step % batches == batches - 1);
    marks += accumulation.sync_gradients() ? '1' : '0';
  }
  return marks;
}

}  // namespace

TEST_CASE("a group of micro-steps ends with the loader, or continues over its end") {
  Accumulation with_loader(3, {});
  CHECK(syncs(with_loader, 4, 2) == "00110011");
  Accumulation run_on(3, {.sync_with_dataloader = false});
  CHECK(syncs(run_on, 4, 3) == "001001001001");
  Accumulation longer_than_the_pass(8, {});
  CHECK(syncs(longer_than_the_pass, 3, 2) == "001001");
}

TEST_CASE("every group except the last of a pass has the chosen number of micro-steps") {
  for (int steps = 1; steps <= 5; ++steps) {
    for (int batches = 1; batches <= 11; ++batches) {
      Accumulation accumulation(steps, {});
      const auto marks = syncs(accumulation, batches, 2);
      for (int i = 0; i < 2 * batches; ++i) {
        const int in_pass = i % batches;
        const bool ends = (in_pass + 1) % steps == 0 || in_pass == batches - 1;
        CHECK((marks[static_cast<std::size_t>(i)] == '1') == ends);
      }
    }
  }
}

TEST_CASE("gradients stay on their rank between updates, unless sync_each_batch is set") {
  Accumulation accumulation(2, {});
  CHECK(accumulation.sync_gradients());
  CHECK_FALSE(accumulation.keeps_gradients());
  accumulation.begin_micro_step(false);
  CHECK_FALSE(accumulation.sync_gradients());
  CHECK(accumulation.keeps_gradients());
  Accumulation eager(2, {.sync_each_batch = true});
  eager.begin_micro_step(false);
  CHECK_FALSE(eager.sync_gradients());
  CHECK_FALSE(eager.keeps_gradients());
}

TEST_CASE("the number of micro-steps can be changed at any time, and is at least one") {
  Accumulation accumulation(4, {});
  accumulation.begin_micro_step(false);
  accumulation.set_steps(2);
  accumulation.begin_micro_step(false);
  CHECK(accumulation.sync_gradients());
  CHECK_THROWS_AS(accumulation.set_steps(0), UsageError);
  CHECK(accumulation.steps() == 2);
  CHECK_THROWS_AS(Accumulation(-1, {}), UsageError);
}
