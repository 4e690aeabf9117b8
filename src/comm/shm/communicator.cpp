#include "comm/shm/communicator.hpp"

#include <ATen/ops/empty.h>

#include <sched.h>

#include <algorithm>
#include <exception>
#include <hortator/error.hpp>

#include "comm/kernels/element.hpp"
#include "comm/operands.hpp"
#include "comm/shm/node_exchange.hpp"
#include "comm/shm/node_problem.hpp"
#include "core/hash.hpp"
#include "core/range.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

using Verb = NodePost::Verb;

// Contiguous bytes that hold the tensor's values. A conjugate or negative view is only a flag on the tensor.
at::Tensor packed(const at::Tensor& tensor) { return tensor.detach().resolve_conj().resolve_neg().contiguous(); }

at::Tensor receiver_of(const at::Tensor& tensor) {
  const bool is_plain = tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
  return is_plain ? tensor.detach() : at::empty(tensor.sizes(), tensor.options());
}

std::uint64_t hash_of(const NodePost& post) {
  auto hash = core::hash(text::concat(static_cast<int>(post.verb), ' ', static_cast<int>(post.op), ' ', post.type, ' ',
                                      post.root, ' ', post.shape.dimensions));
  for (const auto size : post.shape.sizes) hash = core::mix(hash, static_cast<std::uint64_t>(size));
  return hash;
}

std::byte* data_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

}  // namespace

NodeCommunicator::NodeCommunicator(mpi::Communicator comm, std::size_t staging_bytes)
    : comm_(std::move(comm)),
      team_(comm_, staging_bytes),
      mpi_(comm_.duplicate()),
      agreements_(team_.has_one_node() ? nullptr : std::make_shared<mpi::Communicator>(comm_.duplicate())) {}

// A rank that leaves in the middle of a collective publishes it, so that the others do not wait for it.
NodeCommunicator::~NodeCommunicator() {
  if (std::uncaught_exceptions() > 0 || !pending_.empty()) team_.board().raise_abort("an exception has ended its work");
  if (pending_.empty() || team_.has_one_node()) return;
  team_.keep_peer_groups();
  new std::shared_ptr<const mpi::Communicator>(agreements_);
}

Work NodeCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  return start([&]() -> Operation {
    check_result(tensor, at::kCPU, "all_reduce", name());
    check_reducible(tensor.scalar_type(), op);
    auto data = packed(tensor);
    return {.verb = Verb::all_reduce, .op = op, .output = data, .input = data, .target = tensor.detach()};
  });
}

Work NodeCommunicator::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  return start([&]() -> Operation {
    check_result(output, at::kCPU, "reduce_scatter", name());
    check_operand(input, at::kCPU, "reduce_scatter", name());
    check_reducible(input.scalar_type(), op);
    check_parts(input, output, size(), "reduce_scatter");
    return {.verb = Verb::reduce_scatter,
            .op = op,
            .output = receiver_of(output),
            .input = packed(input),
            .target = output.detach()};
  });
}

Work NodeCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  return start([&]() -> Operation {
    check_result(output, at::kCPU, "all_gather", name());
    check_operand(input, at::kCPU, "all_gather", name());
    check_parts(output, input, size(), "all_gather");
    return {.verb = Verb::all_gather, .output = receiver_of(output), .input = packed(input), .target = output.detach()};
  });
}

Work NodeCommunicator::broadcast(at::Tensor tensor, int root) {
  return start([&]() -> Operation {
    check_result(tensor, at::kCPU, "broadcast", name());
    check_root(root, size());
    auto data = packed(tensor);
    return {.verb = Verb::broadcast, .root = root, .output = data, .input = data, .target = tensor.detach()};
  });
}

// Starts all of them before it waits for the first.
Work NodeCommunicator::broadcast_all(std::vector<at::Tensor> tensors, int root) {
  auto works = std::make_shared<std::vector<Work>>();
  for (auto& tensor : tensors) works->push_back(broadcast(std::move(tensor), root));
  return Work([works] {
    for (auto& work : *works) work.wait();
  });
}

Work NodeCommunicator::exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) {
  return start([&]() -> Operation {
    check_exchange(sent, received, at::kCPU, size(), name());
    return {.verb = Verb::exchange, .sent = std::move(sent), .received = std::move(received)};
  });
}

void NodeCommunicator::barrier() {
  start([]() -> Operation { return {.verb = Verb::barrier}; }).wait();
}

// Ranks of other nodes may wait in MPI, which cannot be interrupted.
bool NodeCommunicator::abandon(std::string_view reason) noexcept {
  team_.board().raise_abort(reason);
  abandoned_ = true;
  return team_.has_one_node();
}

at::Tensor NodeCommunicator::allocate(std::int64_t elements, at::ScalarType type) {
  return team_.window().allocate(elements, type);
}

at::Tensor NodeCommunicator::allocate_common(std::int64_t elements, at::ScalarType type) {
  return team_.window().allocate_common(elements, type);
}

std::unique_ptr<Communicator> NodeCommunicator::split(int color, int key) const {
  return std::make_unique<NodeCommunicator>(comm_.split(color, key));
}

Work NodeCommunicator::start(const std::function<Operation()>& make) {
  Operation operation;
  try {
    operation = make();
    if (operation.input.defined()) operation.position = position_of(operation);
  } catch (const c10::Error& error) {
    operation = {.verb = Verb::refused, .problem = error.what_without_backtrace()};
  } catch (const std::exception& error) {
    operation = {.verb = Verb::refused, .problem = error.what()};
  }
  if (pending_.size() == NodeBoard::kept) complete(pending_.front().number);
  const auto number = operation.number = team_.board().post(post_of(operation));
  const bool is_refused = operation.verb == Verb::refused;
  pending_.push_back(std::move(operation));
  if (is_refused) complete(number);  // throws
  advance();
  return Work([this, number] { complete(number); });
}

// Peers access the input of a reduction or broadcast and the output of a gather.
std::optional<WindowPosition> NodeCommunicator::position_of(const Operation& operation) const {
  return team_.window().find(operation.verb == Verb::all_gather ? operation.output : operation.input);
}

NodePost NodeCommunicator::post_of(const Operation& operation) const {
  NodePost post{.verb = operation.verb, .op = operation.op, .root = operation.root};
  if (operation.input.defined()) {
    post.type = static_cast<std::int32_t>(operation.input.scalar_type());
    post.shape = shape_of(operation.input);
  }
  if (operation.position) {
    post.memory = operation.position->segment->id;
    post.offset = operation.position->offset;
  }
  const auto length = std::min(operation.problem.size(), post.text.size() - 1);
  std::copy_n(operation.problem.begin(), length, post.text.begin());
  return post;
}

// Pending operations, from stage to stage.

void NodeCommunicator::advance() {
  if (abandoned_ || pending_.empty()) return;
  if (!team_.has_one_node()) start_agreements();
  for (auto& operation : pending_) {
    if (operation.stage == Stage::done) continue;
    if (!check_agreed(operation) || !operation.is_in_window || !advance_own_part(operation)) return;
  }
}

// By number, the same order on all ranks. An operation that is not done does not hold up the agreement on later ones.
void NodeCommunicator::start_agreements() {
  for (auto& operation : pending_) {
    if (operation.stage != Stage::posted) continue;
    if (!team_.board().all_arrived(operation.number)) return;
    const auto post = post_of(operation);
    operation.agreement =
        NodeAgreementPtr(new NodeAgreement(agreements_, {.is_in_window = is_in_window_of_node(operation),
                                                         .is_refused = post.verb == Verb::refused,
                                                         .hash = hash_of(post)}));
    operation.stage = Stage::met;
  }
}

bool NodeCommunicator::check_agreed(Operation& operation) const {
  if (team_.has_one_node()) {
    if (!team_.board().all_arrived(operation.number) || problem_on_node(operation)) return false;
    operation.is_in_window = is_in_window_of_node(operation);
    operation.stage = std::max(operation.stage, Stage::agreed);
    return true;
  }
  if (operation.stage == Stage::posted) return false;
  if (!operation.agreement->is_complete() || !operation.agreement->is_alike()) return false;
  operation.is_in_window = operation.agreement->is_in_window();
  operation.stage = std::max(operation.stage, Stage::agreed);
  return true;
}

void NodeCommunicator::complete(std::uint64_t number) {
  if (abandoned_) team_.board().throw_if_aborted();
  while (!pending_.empty() && pending_.front().number <= number) {
    auto& operation = pending_.front();
    const bool is_agreed = operation.stage == Stage::done || wait_for_agreement(operation);
    if (is_agreed && operation.stage != Stage::done) do_own_part(operation);
    if (is_agreed) team_.board().wait_for_done(operation.number, meanwhile());
    const bool was_packed = operation.target.defined() && !operation.output.is_alias_of(operation.target);
    if (is_agreed && was_packed) operation.target.copy_(operation.output);
    pending_.pop_front();
  }
  if (const auto found = problems_.extract(number)) {
    const auto& problem = found.mapped();
    throw UsageError(problem.problem).on_rank(problem.rank);
  }
}

// Keeps traffic between nodes moving while this rank waits within its node.
std::function<void()> NodeCommunicator::meanwhile() {
  if (team_.has_one_node()) return {};
  return [this] { advance(); };
}

// A collective on which the ranks differ ends on all of them. complete() throws the reason to the caller that waits.
bool NodeCommunicator::wait_for_agreement(Operation& operation) {
  team_.board().wait_for_arrival(operation.number, meanwhile());
  while (!team_.has_one_node() && (advance(), !operation.agreement->is_complete())) sched_yield();
  if (check_agreed(operation)) return true;
  auto problem = team_.has_one_node() ? problem_on_node(operation) : problem_over_nodes(operation);
  problems_.emplace(operation.number, *std::move(problem));
  team_.board().mark_done(operation.number);
  return false;
}

std::optional<NodeProblem> NodeCommunicator::problem_on_node(const Operation& operation) const {
  std::vector<const NodePost*> posts;
  std::vector<int> ranks;
  for (int peer = 0; peer < team_.size(); ++peer) {
    posts.push_back(&team_.board().post_of(peer, operation.number));
    ranks.push_back(comm_.family_rank(team_.board().global_rank(peer)));
  }
  return find_problem(posts, ranks);
}

NodeProblem NodeCommunicator::problem_over_nodes(const Operation& operation) const {
  const auto all = mpi::all_gather(comm_, post_of(operation));
  std::vector<const NodePost*> posts;
  std::vector<int> ranks;
  for (const auto& post : all) {
    ranks.push_back(comm_.family_rank(static_cast<int>(posts.size())));
    posts.push_back(&post);
  }
  return find_problem(posts, ranks).value();
}

bool NodeCommunicator::is_in_window_of_node(const Operation& operation) const {
  if (!operation.position) return false;
  const bool reduces_common_memory = operation.position->segment->is_common && is_reduction(operation.verb);
  if (reduces_common_memory) return false;  // the ranks would overwrite each other's input
  for (int peer = 0; peer < team_.size(); ++peer) {
    const auto& post = team_.board().post_of(peer, operation.number);
    if (post.memory != operation.position->segment->id || post.offset != operation.position->offset) return false;
  }
  return true;
}

// This rank's part of an operation, done at once or in the background.

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
