// A rank's share of a NodeCommunicator's operation: at once, or on its way between nodes while others go on.
#include <ATen/ops/empty.h>

#include <sched.h>

#include "comm/shm/communicator.hpp"
#include "comm/shm/kernels/element.hpp"
#include "core/range.hpp"

namespace hortator::comm {
namespace {

using Verb = NodePost::Verb;

std::byte* data_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

}  // namespace

// An exception in the middle of it would leave the others waiting.
void NodeCommunicator::work_on(Operation& operation, const std::function<bool()>& work) {
  try {
    operation.is_shared_out = work();
  } catch (const Abandoned&) {
    throw;  // somebody else's fault
  } catch (const std::exception& error) {
    team_.board().raise_abort(error.what());
    throw;
  }
  if (operation.is_shared_out) team_.board().mark_done(operation.number);
}

void NodeCommunicator::do_share(Operation& operation) {
  while (can_fly(operation) && !advance_share(operation)) sched_yield();  // to ranks that share this one's core
  if (operation.is_shared_out) return;
  work_on(operation, [&] {
    is_reduction(operation.verb) ? reduce(operation) : move(operation);
    return true;
  });
}

// What waits for others is left to do_share.
bool NodeCommunicator::advance_share(Operation& operation) {
  if (!team_.is_alone() && !can_fly(operation)) return false;
  if (team_.is_alone()) {
    do_share(operation);
    return true;
  }
  work_on(operation, [&] {
    if (!operation.transfer) operation.transfer = start_transfer(operation);
    auto& transfer = *operation.transfer;
    return !transfer || transfer->advance();
  });
  return operation.is_shared_out;
}

// Only one at a time: what goes over a lane goes in the same order on all of its ranks.
bool NodeCommunicator::can_fly(const Operation& operation) const {
  if (!operation.is_in_window) return false;
  if (operation.verb == Verb::all_reduce) return team_.can_fly();
  const bool is_in_parts = operation.verb == Verb::reduce_scatter || operation.verb == Verb::all_gather;
  return is_in_parts && team_.can_fly_in_parts();
}

PendingTransferPtr NodeCommunicator::start_transfer(const Operation& operation) {
  const auto& place = *operation.place;
  if (operation.verb == Verb::all_gather) return team_.start_gather(place, operation.input);
  const auto what = reduction_of(operation);
  if (operation.verb == Verb::reduce_scatter) return team_.start_reduce_part(place, operation.output, what);
  return team_.start_reduce(place, operation.output.numel(), operation.input.scalar_type(), what);
}

kernels::Reduction NodeCommunicator::reduction_of(const Operation& operation) const {
  return {.element = element_of(operation.input.scalar_type()),
          .op = operation.op,
          .divisor = operation.op == ReduceOp::mean ? size() : 1};
}

void NodeCommunicator::reduce(const Operation& operation) {
  const auto what = reduction_of(operation);
  const auto type = operation.input.scalar_type();
  const auto elements = operation.output.numel();
  const bool in_window = operation.is_in_window;
  if (operation.verb == Verb::all_reduce) {
    if (in_window) return team_.reduce_in_window(*operation.place, elements, type, what);
    return team_.reduce_staged(data_of(operation.output), elements, type, what);
  }
  if (!team_.is_alone()) return mpi_.reduce_scatter(operation.output, operation.input, operation.op).wait();
  if (in_window) return team_.reduce_part_in_window(*operation.place, data_of(operation.output), elements, what);
  team_.reduce_part_staged(data_of(operation.input), data_of(operation.output), elements, what);
}

void NodeCommunicator::move(const Operation& operation) {
  const bool in_window = operation.is_in_window;
  if (operation.verb == Verb::barrier) return;  // all have come: that was it
  if (operation.verb == Verb::all_gather) {
    if (!team_.is_alone()) return gather_over_nodes(operation);
    if (in_window) return team_.gather_in_window(*operation.place, data_of(operation.input), operation.input.nbytes());
    return team_.gather_staged(data_of(operation.output), data_of(operation.input), operation.input.nbytes());
  }
  if (!team_.is_alone()) return mpi_.broadcast(operation.output, operation.root).wait();
  if (in_window) return team_.broadcast_in_window(*operation.place, operation.output.nbytes(), operation.root);
  team_.broadcast_staged(data_of(operation.output), operation.output.nbytes(), operation.root);
}

// MPI must not write to memory that several of its ranks share: common memory is filled afterwards, a slice by each.
void NodeCommunicator::gather_over_nodes(const Operation& operation) {
  const bool is_common = operation.place && operation.place->segment->is_common;
  if (!is_common) return mpi_.all_gather(operation.output, operation.input).wait();
  const auto whole = at::empty({operation.output.numel()}, operation.output.options());
  mpi_.all_gather(whole, operation.input).wait();
  team_.board().meet();  // nobody sends from it any more
  const auto mine = core::balanced(whole.numel(), team_.size(), team_.rank());
  operation.output.view({-1}).narrow(0, mine.begin, mine.size()).copy_(whole.narrow(0, mine.begin, mine.size()));
}

}  // namespace hortator::comm
