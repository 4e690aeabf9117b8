#include "simulation/border/bound_batch.hpp"

#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "machine/device/stream.hpp"
#include "simulation/bound_array.hpp"

namespace hortator::simulation {
namespace {

void require_own_elements(const at::Tensor& output) {
  if (at::has_internal_overlap(output) != at::MemOverlap::Yes) return;
  throw UsageError(
      {.what = text::concat("Several elements of an output of the shape ", output.sizes(), " are the same memory"),
       .why = "one of its strides is 0",
       .hint = "bind an array with memory for each element"});
}

}  // namespace

void BoundBatch::add(hortator_role role, const hortator_array* array) {
  const auto tensor = bound_tensor(array, device_);
  if (role == HORTATOR_OUTPUT) require_own_elements(tensor);
  add(role, tensor);
  if (tensor.is_cpu()) return;
  const auto stream = machine::stream_of_native(array->stream, device_);
  if (std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
}

void BoundBatch::add(hortator_role role, const at::Tensor& tensor) {
  switch (role) {
    case HORTATOR_INPUT:
      return tensors_.inputs.push_back(tensor);
    case HORTATOR_TARGET:
      return tensors_.targets.push_back(tensor);
    case HORTATOR_OUTPUT:
      return tensors_.outputs.push_back(tensor);
    case HORTATOR_LOSS_ARGUMENT:
      return tensors_.loss_arguments.push_back(tensor);
    case HORTATOR_PRIORITY:
      if (tensors_.priorities.defined()) {
        throw UsageError({.what = "The batch has an array of priorities already",
                          .hint = "bind one array as HORTATOR_PRIORITY, with a number for each sample"});
      }
      tensors_.priorities = tensor;
      return;
  }
  throw UsageError({.what = text::concat("hortator_batch_add got the unknown role ", static_cast<int>(role)),
                    .hint = "use HORTATOR_INPUT, TARGET, OUTPUT, LOSS_ARGUMENT or PRIORITY"});
}

}  // namespace hortator::simulation
