#include "simulation/border/arguments.hpp"
#include "simulation/border/guarded.hpp"
#include "simulation/bound_array.hpp"

using namespace hortator::simulation;

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
    require_place(run, "run");
    require_place(batch, "batch");
    *batch = std::make_unique<BoundBatch>().release();
    return HORTATOR_OK;
  });
}

hortator_status hortator_batch_add(hortator_batch* batch, hortator_role role, const hortator_array* array) {
  return guarded([&] {
    require_place(batch, "batch");
    static_cast<BoundBatch&>(*batch).add(role, bound_tensor(array));
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
    const double mean = model_of(model).train([&] { return tensors_of(batch); }, loss != nullptr);
    if (loss != nullptr) *loss = mean;
    return HORTATOR_OK;
  });
}

hortator_status hortator_evaluate(hortator_model* model, hortator_batch* batch, double* loss) {
  return guarded([&] {
    const double mean = model_of(model).evaluate([&] { return tensors_of(batch); }, loss != nullptr);
    if (loss != nullptr) *loss = mean;
    return HORTATOR_OK;
  });
}

hortator_status hortator_infer(hortator_model* model, hortator_batch* batch) {
  return guarded([&] {
    model_of(model).infer(tensors_of(batch));
    return HORTATOR_OK;
  });
}

hortator_status hortator_adjoint(hortator_model* model, hortator_batch* batch, const hortator_array* cotangent,
                                 const hortator_array* gradient) {
  return guarded([&] {
    model_of(model).adjoint(tensors_of(batch), bound_tensor(cotangent), bound_tensor(gradient));
    return HORTATOR_OK;
  });
}

hortator_status hortator_export(hortator_model* model, const char* dir) {
  return guarded([&] {
    model_of(model).export_to(text_of(dir, "dir"));
    return HORTATOR_OK;
  });
}
