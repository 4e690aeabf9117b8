#include "simulation/border/arguments.hpp"
#include "simulation/border/guarded.hpp"
#include "simulation/border/stream_order.hpp"
#include "simulation/calls/local_outcome.hpp"

using namespace hortator::simulation;

hortator_status hortator_buffer_create(hortator_run* run, const char* name, hortator_buffer** buffer) {
  return guarded_collective([&] {
    if (buffer != nullptr) *buffer = nullptr;
    auto& of = run_of(run);
    all_succeed(of.comm(), [&] { require_place(buffer, "buffer"); });
    *buffer = of.buffer(name).handle();
    return HORTATOR_OK;
  });
}

hortator_status hortator_buffer_put(hortator_buffer* buffer, hortator_batch* batch) {
  return guarded([&] {
    const auto& bound = batch_of(batch);
    const StreamOrder order(bound.streams());
    return buffer_of(buffer).put(bound.tensors()) ? HORTATOR_OK : HORTATOR_NOTHING;
  });
}

hortator_status hortator_buffer_count(const hortator_buffer* buffer, int64_t* count) {
  return guarded([&] {
    require_place(count, "count");
    *count = buffer_of(buffer).samples().count();
    return HORTATOR_OK;
  });
}

hortator_status hortator_buffer_train(hortator_buffer* buffer, hortator_model* model, int64_t steps, double* loss) {
  return guarded_collective(
      [&] { return status_of(buffer_of(buffer).train(TrainedModel::find(model), steps, loss != nullptr), loss); });
}
