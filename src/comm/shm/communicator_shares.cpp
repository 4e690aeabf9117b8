// NodeCommunicator: this rank's part of an operation, done at once or in the background.
#include <ATen/ops/empty.h>

#include <sched.h>

#include "comm/kernels/element.hpp"
#include "comm/shm/communicator.hpp"
#include "comm/shm/node_exchange.hpp"
#include "core/range.hpp"

namespace hortator::comm {
namespace {

using Verb = NodePost::Verb;

std::byte* data_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

}  // namespace

// Runs `work`, which returns whether the part is done. An exception in the middle would leave the other ranks waiting,
// so it is published to them first.
void NodeCommunicator::work_on(Operation& operation, const std::function<bool()>& work) {
  try {
    if (work()) operation.stage = Stage::done;
  } catch (const Abandoned&) {
    throw;  // another rank has left and has published the reason
  } catch (const std::exception& error) {
    team_.board().raise_abort(error.what());
    throw;
  }
  if (operation.stage == Stage::done) team_.board().mark_done(operation.number);
}

void NodeCommunicator::do_own_part(Operation& operation) {
  while (can_move_in_background(operation) && !advance_own_part(operation))
    sched_yield();  // to ranks that share this one's core
  if (operation.stage == Stage::done) return;
  work_on(operation, [&] {
    is_reduction(operation.verb) ? reduce(operation) : move(operation);
    return true;
  });
}

// What would wait for other nodes is left to do_own_part.
bool NodeCommunicator::advance_own_part(Operation& operation) {
  if (!team_.has_one_node() && !can_move_in_background(operation)) return false;
  if (team_.has_one_node()) {
    do_own_part(operation);
    return true;
  }
  work_on(operation, [&] {
    if (operation.stage < Stage::moving) {
      operation.transfer = start_transfer(operation);
      operation.stage = Stage::moving;
    }
    return !operation.transfer || operation.transfer->advance();
  });
  return operation.stage == Stage::done;
}

// advance() moves one operation at a time: operations of a peer group go in the same order on all of its ranks.
bool NodeCommunicator::can_move_in_background(const Operation& operation) const {
  if (!operation.is_in_window) return false;
  if (operation.verb == Verb::all_reduce) return team_.can_move_in_background();
  const bool is_in_parts = operation.verb == Verb::reduce_scatter || operation.verb == Verb::all_gather;
  return is_in_parts && team_.can_move_parts_in_background();
}

PendingTransferPtr NodeCommunicator::start_transfer(const Operation& operation) {
  const auto& position = *operation.position;
  if (operation.verb == Verb::all_gather) return team_.start_gather(position, operation.input);
  const auto what = reduction_of(operation);
  if (operation.verb == Verb::reduce_scatter) return team_.start_reduce_part(position, operation.output, what);
  return team_.start_reduce(position, operation.output.numel(), operation.input.scalar_type(), what);
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
    if (in_window) return team_.reduce_in_window(*operation.position, elements, type, what);
    return team_.reduce_staged(data_of(operation.output), elements, type, what);
  }
  if (!team_.has_one_node()) return mpi_.reduce_scatter(operation.output, operation.input, operation.op).wait();
  if (in_window) return team_.reduce_part_in_window(*operation.position, data_of(operation.output), elements, what);
  team_.reduce_part_staged(data_of(operation.input), data_of(operation.output), elements, what);
}

void NodeCommunicator::move(const Operation& operation) {
  const bool in_window = operation.is_in_window;
  if (operation.verb == Verb::barrier) return;  // done once all ranks have arrived
  if (operation.verb == Verb::exchange) {
    if (auto problem = exchange_over_nodes(comm_, team_, operation.sent, operation.received))
      problems_.emplace(operation.number, *std::move(problem));
    return;
  }
  if (operation.verb == Verb::all_gather) {
    if (!team_.has_one_node()) return gather_over_nodes(operation);
    if (in_window)
      return team_.gather_in_window(*operation.position, data_of(operation.input), operation.input.nbytes());
    return team_.gather_staged(data_of(operation.output), data_of(operation.input), operation.input.nbytes());
  }
  if (!team_.has_one_node()) return mpi_.broadcast(operation.output, operation.root).wait();
  if (in_window) return team_.broadcast_in_window(*operation.position, operation.output.nbytes(), operation.root);
  team_.broadcast_staged(data_of(operation.output), operation.output.nbytes(), operation.root);
}

// MPI must not write to memory that several of its ranks share: it writes to private memory, from which each rank of
// the node then copies a slice to the common memory.
void NodeCommunicator::gather_over_nodes(const Operation& operation) {
  const bool is_common = operation.position && operation.position->segment->is_common;
  if (!is_common) return mpi_.all_gather(operation.output, operation.input).wait();
  const auto whole = at::empty({operation.output.numel()}, operation.output.options());
  mpi_.all_gather(whole, operation.input).wait();
  team_.board().meet();  // no rank sends from the common memory any more
  const auto mine = core::balanced(whole.numel(), team_.size(), team_.rank());
  operation.output.view({-1}).narrow(0, mine.begin, mine.size()).copy_(whole.narrow(0, mine.begin, mine.size()));
}

}  // namespace hortator::comm
