#include "parallel/zero/gradient_array.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "parallel/data_parallel/alias.hpp"
#include "parallel/data_parallel/copy_gradient.hpp"

namespace hortator::parallel {
namespace {

// The type of gradients as backward makes them: slices may be copies in another type.
at::ScalarType type_of(const parallel::FlatParameters& parameters, std::size_t flat) {
  return parameters.parameters()[parameters.plan().flats[flat].items.front()].tensor.scalar_type();
}

}  // namespace

GradientArray::GradientArray(const parallel::FlatParameters& parameters, std::size_t flat, at::Tensor shard,
                             const DataParallel& parallel, const ShardRanks& ranks)
    : parameters_(parameters),
      ranks_(ranks),
      elements_(parameters.plan().flats[flat].elements),
      travel_type_(parallel::travel_type(parallel.options, type_of(parameters, flat))),
      shard_(std::move(shard)) {
  const auto& plan = parameters.plan();
  const auto part = plan.part(flat, parameters.communicator().rank());
  for (const auto item : plan.flats[flat].items) {
    const auto& [name, tensor] = parameters.parameters()[item];
    const auto& mine = parameters.slice(item);
    const auto begin = plan.positions[item].offset + parameters.owned(item).begin - part.begin;
    members_.push_back({.name = name,
                        .tensor = tensor,
                        .in_shard = alias(shard_, mine.numel() > 0 ? begin : 0, mine, mine.scalar_type()),
                        .number = item});
  }
}

bool GradientArray::note(Member& member) {
  return !std::exchange(member.waits, true) && !was_sent_ && ++arrived_ == members_.size();
}

bool GradientArray::has_leftovers() const {
  return std::any_of(members_.begin(), members_.end(), [](const Member& member) { return member.waits; });
}

// Frees each gradient as soon as it is in the buffer. Gaps between parameters are never read.
void GradientArray::pack(const at::Tensor& buffer) {
  for (auto& member : members_) {
    const auto target = buffer.narrow(0, parameters_.plan().positions[member.number].offset, member.tensor.numel());
    auto& whole = member.tensor.mutable_grad();
    if (whole.defined() && member.waits) {
      copy_gradient(target, whole.detach().reshape({-1}));
      whole.reset();
    } else {
      target.zero_();
    }
    member.waits = false;
  }
  // The sum of all ranks' gradients could overflow.
  if (travel_type_ == at::kHalf) buffer.div_(ranks_.group.size());
  adds_ = was_sent_ || has_gradients();
  if (adds_ && !was_sent_) load_gradients();
}

bool GradientArray::has_gradients() const {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& member) { return gradient(member).defined(); });
}

// Sets the shard to the slices' gradients from earlier passes, and to zero where there are none.
void GradientArray::load_gradients() const {
  for (const auto& member : members_) {
    const auto& before = gradient(member);
    if (!before.defined()) {
      member.in_shard.zero_();
    } else if (!before.is_same(member.in_shard)) {
      member.in_shard.copy_(before.detach());
    }
  }
}

void GradientArray::start(const at::Tensor& buffer, bool with_replicas) {
  replicas_ = with_replicas ? ranks_.replicas : nullptr;
  const bool direct = !adds_ && travel_type_ == shard_.scalar_type();
  incoming_ = direct ? shard_ : at::empty({shard_.numel()}, buffer.options());
  const auto op = travel_type_ == at::kHalf ? comm::ReduceOp::sum : comm::ReduceOp::mean;
  work_ = ranks_.group.reduce_scatter(incoming_, buffer, op);
  if (queues_behind()) between_groups_ = replicas_->all_reduce(incoming_, comm::ReduceOp::mean);
  is_on_the_way_ = true;
  was_sent_ = true;
}

// Then backward need not wait for the first reduction in order to start the second one.
bool GradientArray::queues_behind() const {
  return replicas_ != nullptr && ranks_.group.traits().queues_on_device && replicas_->traits().queues_on_device;
}

void GradientArray::wait() {
  is_on_the_way_ = false;
  work_.wait();
  if (replicas_ == nullptr) return;
  if (!queues_behind()) between_groups_ = replicas_->all_reduce(incoming_, comm::ReduceOp::mean);
  between_groups_.wait();
}

void GradientArray::unpack() {
  const auto incoming = std::exchange(incoming_, at::Tensor());
  if (incoming.is_same(shard_)) return;
  adds_ ? shard_.add_(incoming) : shard_.copy_(incoming);
}

void GradientArray::publish(const Member& member) const {
  auto& own = gradient(member);
  if (!own.is_same(member.in_shard)) own = member.in_shard;
}

void GradientArray::end_pass(bool complete) {
  arrived_ = 0;
  was_sent_ = false;
  for (auto& member : members_) {
    member.reached = false;
    if (complete) member.used = false;
  }
}

void GradientArray::drop_pass() {
  incoming_.reset();
  for (auto& member : members_) member.waits = false;
  end_pass(/*complete=*/false);
}

}  // namespace hortator::parallel
