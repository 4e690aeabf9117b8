#pragma once

#include <string>

#include "simulation/border/bound_batch.hpp"
#include "simulation/run.hpp"

/// The arguments of C functions as objects. All throw UsageError for NULL.
namespace hortator::simulation {

Run& run_of(hortator_run* run);
TrainedModel& model_of(hortator_model* model);
BoundBatch& batch_of(hortator_batch* batch);
RunBuffer& buffer_of(hortator_buffer* buffer);
std::string text_of(const char* text, const char* name);
void require_place(const void* place, const char* name);

}  // namespace hortator::simulation
