#include "simulation/border/arguments.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {

void require_place(const void* place, const char* name) {
  if (place != nullptr) return;
  throw UsageError({.what = text::concat("The argument ", text::quote(name), " is NULL"),
                    .hint = "pass what an earlier call has made, and check that call's status"});
}

Run& run_of(hortator_run* run) {
  require_place(run, "run");
  return static_cast<Run&>(*run);
}

TrainedModel& model_of(hortator_model* model) {
  require_place(model, "model");
  return static_cast<TrainedModel&>(*model);
}

BoundBatch& batch_of(hortator_batch* batch) {
  require_place(batch, "batch");
  return static_cast<BoundBatch&>(*batch);
}

RunBuffer& buffer_of(hortator_buffer* buffer) {
  require_place(buffer, "buffer");
  return static_cast<RunBuffer&>(*buffer);
}

std::string text_of(const char* text, const char* name) {
  require_place(text, name);
  return text;
}

}  // namespace hortator::simulation
