#include "simulation/border/arguments.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

template <typename Object, typename Opaque>
Object& object_of(Opaque* handle, const char* name) {
  require_place(handle, name);
  if (auto* object = Object::find(handle)) return *object;
  throw UsageError({.what = text::concat("The argument ", text::quote(name), " names nothing"),
                    .why = "its run has ended, it was freed, or it is a handle of another kind",
                    .hint = "use it between the call that makes it and the one that ends it"});
}

}  // namespace

void require_place(const void* place, const char* name) {
  if (place != nullptr) return;
  throw UsageError({.what = text::concat("The argument ", text::quote(name), " is NULL"),
                    .hint = "pass what an earlier call has made, and check that call's status"});
}

Run& run_of(hortator_run* run) { return object_of<Run>(run, "run"); }

TrainedModel& model_of(hortator_model* model) { return object_of<TrainedModel>(model, "model"); }

BoundBatch& batch_of(hortator_batch* batch) { return object_of<BoundBatch>(batch, "batch"); }

RunBuffer& buffer_of(const hortator_buffer* buffer) { return object_of<RunBuffer>(buffer, "buffer"); }

hortator_status status_of(const TrainedModel::Step& step, double* loss) {
  if (loss != nullptr && step.loss) *loss = *step.loss;
  return step.is_done ? HORTATOR_OK : HORTATOR_NOTHING;
}

TrainedModel* optional_model(hortator_model* model, const char* name) {
  return model == nullptr ? nullptr : &object_of<TrainedModel>(model, name);
}

RunBuffer* optional_buffer(hortator_buffer* buffer, const char* name) {
  return buffer == nullptr ? nullptr : &object_of<RunBuffer>(buffer, name);
}

std::string text_of(const char* text, const char* name) {
  require_place(text, name);
  return text;
}

}  // namespace hortator::simulation
