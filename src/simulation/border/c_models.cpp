#include <optional>

#include "simulation/border/arguments.hpp"
#include "simulation/border/guarded.hpp"
#include "simulation/border/stream_order.hpp"
#include "simulation/calls/local_outcome.hpp"

using namespace hortator::simulation;

namespace {

/// A batch of a collective call, which is in order with the caller's streams until the call ends. What is wrong with it
/// is found by the call, which reports it together with the other ranks.
class OrderedBatch {
 public:
  explicit OrderedBatch(hortator_batch* batch) : batch_(batch) {}

  const TensorBatch& operator()() {
    const auto& bound = batch_of(batch_);
    order_.emplace(bound.streams());
    return bound.tensors();
  }

 private:
  hortator_batch* batch_;
  std::optional<StreamOrder> order_ = {};
};

/// A batch and more arrays of one call, which is in order with the caller's streams until the call ends.
class BatchAndArrays {
 public:
  BatchAndArrays(hortator_batch* batch, const std::vector<const hortator_array*>& more)
      : batch_(batch_of(batch)), all_(with(batch_, more)), order_(all_.streams()) {}

  const TensorBatch& tensors() const { return batch_.tensors(); }
  std::vector<at::Tensor> arrays() const {
    const auto& targets = all_.tensors().targets;
    const auto own = static_cast<std::ptrdiff_t>(batch_.tensors().targets.size());
    return {targets.begin() + own, targets.end()};
  }

 private:
  // The role does not matter: the arrays are taken out again.
  static BoundBatch with(const BoundBatch& batch, const std::vector<const hortator_array*>& more) {
    BoundBatch all(batch);
    for (const auto* array : more) all.add(HORTATOR_TARGET, array);
    return all;
  }

  const BoundBatch& batch_;
  BoundBatch all_;
  StreamOrder order_;
};

}  // namespace

hortator_status hortator_model_create(hortator_run* run, const char* name, hortator_model** model) {
  return guarded_collective([&] {
    if (model != nullptr) *model = nullptr;
    auto& of = run_of(run);
    all_succeed(of.comm(), [&] { require_place(model, "model"); });
    *model = of.model(name).handle();
    return HORTATOR_OK;
  });
}

hortator_status hortator_batch_create(hortator_run* run, hortator_batch** batch) {
  return guarded([&] {
    require_place(batch, "batch");
    *batch = nullptr;
    *batch = std::make_unique<BoundBatch>(run_of(run).accelerator().device()).release()->handle();
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
    if (batch != nullptr) const std::unique_ptr<BoundBatch> freed(&batch_of(batch));
    return HORTATOR_OK;
  });
}

hortator_status hortator_train(hortator_model* model, hortator_batch* batch, double* loss) {
  return guarded_collective([&] {
    OrderedBatch ordered(batch);
    return status_of(model_of(model).train([&] { return ordered(); }, loss != nullptr), loss);
  });
}

hortator_status hortator_evaluate(hortator_model* model, hortator_batch* batch, double* loss) {
  return guarded_collective([&] {
    OrderedBatch ordered(batch);
    return status_of(model_of(model).evaluate([&] { return ordered(); }, loss != nullptr), loss);
  });
}

hortator_status hortator_infer(hortator_model* model, hortator_batch* batch) {
  return guarded([&] {
    OrderedBatch ordered(batch);
    model_of(model).infer(ordered());
    return HORTATOR_OK;
  });
}

hortator_status hortator_adjoint(hortator_model* model, hortator_batch* batch, const hortator_array* cotangent,
                                 const hortator_array* gradient) {
  return guarded([&] {
    const BatchAndArrays bound(batch, {cotangent, gradient});
    const auto& arrays = bound.arrays();
    model_of(model).adjoint(bound.tensors(), arrays[0], arrays[1]);
    return HORTATOR_OK;
  });
}

hortator_status hortator_tangent(hortator_model* model, hortator_batch* batch, int32_t output, int32_t input,
                                 const hortator_array* direction, const hortator_array* tangent) {
  return guarded([&] {
    const BatchAndArrays bound(batch, {direction, tangent});
    const auto& arrays = bound.arrays();
    model_of(model).tangent(bound.tensors(), {.output = output, .input = input}, arrays[0], arrays[1]);
    return HORTATOR_OK;
  });
}

hortator_status hortator_jacobian(hortator_model* model, hortator_batch* batch, int32_t output, int32_t input,
                                  const hortator_array* jacobian) {
  return guarded([&] {
    const BatchAndArrays bound(batch, {jacobian});
    model_of(model).jacobian(bound.tensors(), {.output = output, .input = input}, bound.arrays().front());
    return HORTATOR_OK;
  });
}

hortator_status hortator_export(hortator_model* model, const char* dir) {
  return guarded_collective([&] {
    model_of(model).export_to(dir);
    return HORTATOR_OK;
  });
}
