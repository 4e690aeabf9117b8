#include "simulation/training/left_out_steps.hpp"

#include <hortator/error.hpp>

#include "core/log.hpp"
#include "core/text/text.hpp"

namespace hortator::simulation {

void LeftOutSteps::note_left_out(const char* number) {
  constexpr std::int64_t max_in_a_row = 100;
  constexpr std::int64_t warn_every = 50;
  ++all_;
  ++in_a_row_;
  if (reports_ && (all_ == 1 || all_ % warn_every == 0)) {
    log::warn("a training step of the model ", model_, " was left out on all ranks, because a ", number,
              " is not a finite number (left out so far: ", all_, ", of these in a row: ", in_a_row_,
              "; the next warning comes after ", warn_every, ")");
  }
  if (in_a_row_ < max_in_a_row) return;
  throw Error(
      {.what = text::concat(in_a_row_, " training steps of the model ", text::quote(model_), " in a row were left out"),
       .why = text::concat("in each of them a ", number,
                           " was not a finite number; the parameters are those "
                           "after the last good step"),
       .hint = "look for NaN in the arrays that are bound, and use a lower learning rate"});
}

}  // namespace hortator::simulation
