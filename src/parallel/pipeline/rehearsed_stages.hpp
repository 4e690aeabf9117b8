#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "mpi/communicator.hpp"

/// Messages between the stages of a rehearsal, in which the other stages do not exist: their shapes are those of other
/// messages.
namespace hortator::parallel {

/// Notes what this rank sends to stage `stage`.
void note_stage_message(int stage, const std::vector<at::Tensor>& tensors);

/// Notes what this rank sends to a neighbour among `ranks`, for the rehearsal's report.
void note_stage_traffic(const mpi::Communicator& ranks, const std::vector<at::Tensor>& tensors);

/// Says what stage `stage` gets next, where its own forward has shown the shapes.
void foresee_activations(int stage, const std::vector<at::Tensor>& tensors);

/// What stage `stage` gets from the one before it, micro-batch by micro-batch. The shapes are those that were foreseen,
/// else those of what this rank has sent from the first stage, or of what a rank of the first stage has sent in its own
/// rehearsal (HORTATOR_STAGE_INPUTS). Throws where there is neither.
std::vector<at::Tensor> rehearsed_activations(int stage, c10::Device device);
/// The gradients of what this rank has sent to stage `stage`, in the same order.
std::vector<at::Tensor> rehearsed_gradients(int stage, c10::Device device);

/// What this rank has sent to the first stage after its own, for HORTATOR_STAGE_INPUTS; "" where it has sent nothing.
std::string noted_stage_messages();

}  // namespace hortator::parallel
