#include "simulation/border/arguments.hpp"
#include "simulation/border/guarded.hpp"
#include "simulation/border/stream_order.hpp"

using namespace hortator::simulation;

namespace {

/// None of a missing batch: a collective call reports it together with the other ranks.
const std::vector<c10::Stream>& streams_of(hortator_batch* batch) {
  static const std::vector<c10::Stream> none;
  return batch == nullptr ? none : batch_of(batch).streams();
}

}  // namespace

hortator_status hortator_model_create(hortator_run* run, const char* name, hortator_model** model) {
  return guarded([&] {
    require_place(model, "model");
    *model = nullptr;
    *model = &run_of(run).model(text_of(name, "name"));
    return HORTATOR_OK;
  });
}

hortator_status hortator_batch_create(hortator_run* run, hortator_batch** batch) {
  return guarded([&] {
    require_place(batch, "batch");
    *batch = std::make_unique<BoundBatch>(run_of(run).accelerator().device()).release();
    return HORTATOR_OK;
  });
}

hortator_status hortator_batch_add(hortator_batch* batch, hortator_role role, const hortator_array* array) {
  return guarded([&] {
    batch_of(batch).add(role, array);
    return HORTATOR_OK;
  });
}

hortator_status hortator_batch_free(hortator_batch* batch) {
  return guarded([&] {
    const std::unique_ptr<BoundBatch> freed(static_cast<BoundBatch*>(batch));
    return HORTATOR_OK;
  });
}

hortator_status hortator_train(hortator_model* model, hortator_batch* batch, double* loss) {
  return guarded([&] {
    const StreamOrder order(streams_of(batch));
    const double mean = model_of(model).train([&] { return batch_of(batch).tensors(); }, loss != nullptr);
    if (loss != nullptr) *loss = mean;
    return HORTATOR_OK;
  });
}

hortator_status hortator_evaluate(hortator_model* model, hortator_batch* batch, double* loss) {
  return guarded([&] {
    const StreamOrder order(streams_of(batch));
    const double mean = model_of(model).evaluate([&] { return batch_of(batch).tensors(); }, loss != nullptr);
    if (loss != nullptr) *loss = mean;
    return HORTATOR_OK;
  });
}

hortator_status hortator_infer(hortator_model* model, hortator_batch* batch) {
  return guarded([&] {
    const StreamOrder order(streams_of(batch));
    model_of(model).infer(batch_of(batch).tensors());
    return HORTATOR_OK;
  });
}

hortator_status hortator_adjoint(hortator_model* model, hortator_batch* batch, const hortator_array* cotangent,
                                 const hortator_array* gradient) {
  return guarded([&] {
    BoundBatch arrays(batch_of(batch));  // with the two more, whose roles do not matter
    arrays.add(HORTATOR_TARGET, cotangent);
    arrays.add(HORTATOR_TARGET, gradient);
    const StreamOrder order(arrays.streams());
    const auto& added = arrays.tensors().targets;
    model_of(model).adjoint(batch_of(batch).tensors(), added[added.size() - 2], added.back());
    return HORTATOR_OK;
  });
}

hortator_status hortator_export(hortator_model* model, const char* dir) {
  return guarded([&] {
    model_of(model).export_to(text_of(dir, "dir"));
    return HORTATOR_OK;
  });
}
