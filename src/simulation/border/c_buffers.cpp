#include "simulation/border/arguments.hpp"
#include "simulation/border/guarded.hpp"
#include "simulation/border/stream_order.hpp"

using namespace hortator::simulation;

hortator_status hortator_buffer_create(hortator_run* run, const char* name, hortator_buffer** buffer) {
  return guarded([&] {
    require_place(buffer, "buffer");
    *buffer = nullptr;
    *buffer = &run_of(run).buffer(name);
    return HORTATOR_OK;
  });
}

hortator_status hortator_buffer_put(hortator_buffer* buffer, hortator_batch* batch) {
  return guarded([&] {
    const auto& bound = batch_of(batch);
    const StreamOrder order(bound.streams());
    buffer_of(buffer).samples().put(bound.tensors());
    return HORTATOR_OK;
  });
}

hortator_status hortator_buffer_count(hortator_buffer* buffer, int64_t* count) {
  return guarded([&] {
    require_place(count, "count");
    *count = buffer_of(buffer).samples().count();
    return HORTATOR_OK;
  });
}

hortator_status hortator_buffer_train(hortator_buffer* buffer, hortator_model* model, int64_t steps, double* loss) {
  return guarded([&] {
    const auto last = buffer_of(buffer).train(static_cast<TrainedModel*>(model), steps, loss != nullptr);
    if (!last) return HORTATOR_NOTHING;
    if (loss != nullptr) *loss = *last;
    return HORTATOR_OK;
  });
}
