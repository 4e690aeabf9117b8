#pragma once

#include <string>

#include "simulation/border/bound_batch.hpp"
#include "simulation/run.hpp"

/// The arguments of C functions as objects. All throw UsageError for NULL, and for a handle that names nothing: of a
/// run that has ended, of a batch that was freed, or of another kind.
namespace hortator::simulation {

Run& run_of(hortator_run* run);
TrainedModel& model_of(hortator_model* model);
BoundBatch& batch_of(hortator_batch* batch);
RunBuffer& buffer_of(const hortator_buffer* buffer);
std::string text_of(const char* text, const char* name);
void require_place(const void* place, const char* name);

/// The status of a step, whose loss is stored in `loss` (may be NULL) if there is one.
hortator_status status_of(const TrainedModel::Step& step, double* loss);

/// NULL may be passed.
TrainedModel* optional_model(hortator_model* model, const char* name);
RunBuffer* optional_buffer(hortator_buffer* buffer, const char* name);

}  // namespace hortator::simulation
