#include "train/gradient_scatter.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "shard/scratch_tensor.hpp"
#include "train/alias.hpp"
#include "train/copy_gradient.hpp"
#include "train/gradient_faults.hpp"
#include "train/stopwatch.hpp"

namespace hortator::train {
namespace {

constexpr std::size_t buffers_a_type = 2;  // one is filled while the other travels

}  // namespace

GradientScatter::GradientScatter(shard::FlatParameters& parameters, const DataParallel& parallel,
                                 std::function<bool()> is_paused)
    : flat_(parameters), parallel_(parallel), sharding_(*parallel.sharding), is_paused_(std::move(is_paused)) {
  // Files are each rank's own: a disk without room must not leave the others waiting.
  mpi::all_or_none(parallel_.host, [this] { plan_arrays(); });
  allocate_buffers();
  hook();
}

void GradientScatter::plan_arrays() {
  const auto& plan = flat_.plan();
  for (std::size_t flat = 0; flat < plan.flats.size(); ++flat) {
    const auto& items = plan.flats[flat].items;
    if (!flat_.is_trained(items.front())) continue;
    const auto type = flat_.parameters()[items.front()].tensor.scalar_type();
    Array array{
        .flat = flat, .elements = plan.flats[flat].elements, .travel_type = travel_type(parallel_.options, type)};
    const auto& slice = flat_.slice(items.front());
    array.shard = new_shard(plan.part_elements(flat), slice);
    for (const auto item : items) {
      const auto& [name, tensor] = flat_.parameters()[item];
      const auto begin =
          plan.places[item].offset + flat_.owned(item).begin - plan.part(flat, flat_.communicator().rank()).begin;
      const auto& mine = flat_.slice(item);
      array.parameters.push_back(parameters_.size());
      parameters_.push_back({.name = name,
                             .tensor = tensor,
                             .place = alias(array.shard, mine.numel() > 0 ? begin : 0, mine, mine.scalar_type()),
                             .number = item,
                             .array = arrays_.size()});
    }
    arrays_.push_back(std::move(array));
  }
  order_.resize(arrays_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

// Beside the moments: what a rank has of a model is there then but for what is in use. On a device they stay there.
at::Tensor GradientScatter::new_shard(std::int64_t elements, const at::Tensor& like) const {
  const auto& folder = sharding_.moments.folder;
  if (folder.empty() || !like.is_cpu()) return at::zeros({elements}, like.options().requires_grad(false));
  return shard::zeros_in_scratch(folder, elements, like.scalar_type());
}

// Each is as long as the longest array that travels in its type. @collective
void GradientScatter::allocate_buffers() {
  std::map<at::ScalarType, std::int64_t> longest;
  for (const auto& array : arrays_) {
    auto& elements = longest[array.travel_type];
    elements = std::max(elements, array.elements);
  }
  for (const auto& [type, elements] : longest) {
    for (std::size_t i = 0; i < buffers_a_type; ++i)
      buffers_.push_back({.memory = flat_.communicator().allocate(elements, type)});
  }
  if (parallel_.marks == Marks::from_host_to_host) return;
  const auto votes = parallel_.votes != nullptr ? StepVotes::marks : 0;
  const auto marks = static_cast<std::int64_t>(parameters_.size() + arrays_.size() + 2 + votes);
  marks_ = parallel_.communicator.allocate(marks, at::kFloat);
}

void GradientScatter::hook() {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    hooks_.emplace_back(parameters_[i].tensor, [this, i] { on_gradient(i); });
}

void GradientScatter::on_gradient(std::size_t index) {
  const at::NoGradGuard no_grad;
  auto& parameter = parameters_[index];
  check_dense(parameter.name, parameter.tensor.grad());
  if (!std::exchange(reached_, true)) parallel_.in_common.open();
  end_.call([this] { finish_alone(); }, parallel_.pass);
  parameter.used = true;
  if (!std::exchange(parameter.reached, true)) arrivals_.note(index);
  if (next_ > 0) sharding_.group.advance();
  auto& array = arrays_[parameter.array];
  if (std::exchange(parameter.waits, true) || array.sent) return;
  if (++array.arrived < array.parameters.size()) return;
  completed_.push_back(parameter.array);
  start_full_arrays();
}

// Plain loss.backward(): see GradientReducer.
void GradientScatter::finish_alone() {
  if (reached_) parallel_.in_common.agree();
  finish();
}

// In the first pass the order is a guess that need not hold: arrays that come out of turn wait for the others.
void GradientScatter::start_full_arrays() {
  while (next_ < order_.size()) {
    const auto& array = arrays_[order_[next_]];
    if (array.late || array.arrived < array.parameters.size()) return;
    start(order_[next_++]);
  }
}

// @collective
void GradientScatter::start(std::size_t index) {
  parallel_.in_common.note_sent(index);
  auto& array = arrays_[index];
  const auto buffer = take_buffer(index);
  {
    const Stopwatch copying(times_.copying);
    fill(array, buffer);
    array.adds = array.sent || has_gradients(array);
    if (array.adds && !array.sent) bring_gradients_in(array);
  }
  const Stopwatch starting(times_.starting);
  const bool direct = !array.adds && array.travel_type == array.shard.scalar_type();
  array.incoming = direct ? array.shard : at::empty({array.shard.numel()}, buffer.options());
  // The sum of all ranks' gradients in fp16 could overflow: they were divided.
  const auto op = array.travel_type == at::kHalf ? comm::ReduceOp::sum : comm::ReduceOp::mean;
  array.work = sharding_.group.reduce_scatter(array.incoming, buffer, op);
  array.on_the_way = true;
  array.sent = true;
}

// What backward has made goes as soon as it is in the buffer. Rests between parameters are never looked at.
void GradientScatter::fill(Array& array, const at::Tensor& buffer) {
  for (const auto i : array.parameters) {
    auto& parameter = parameters_[i];
    const auto place = buffer.narrow(0, flat_.plan().places[parameter.number].offset, parameter.tensor.numel());
    auto& gradient = parameter.tensor.mutable_grad();
    if (gradient.defined() && parameter.waits) {
      copy_gradient(place, gradient.detach().reshape({-1}));
      gradient.reset();
    } else {
      place.zero_();
    }
    parameter.waits = false;
  }
  if (array.travel_type == at::kHalf) buffer.div_(sharding_.group.size());
}

// Waits for the array that had it before.
at::Tensor GradientScatter::take_buffer(std::size_t index) {
  const auto type = arrays_[index].travel_type;
  auto* buffer = &buffers_[turn_++ % buffers_.size()];
  while (buffer->memory.scalar_type() != type) buffer = &buffers_[turn_++ % buffers_.size()];
  if (buffer->taken_by >= 0) wait(static_cast<std::size_t>(buffer->taken_by));
  buffer->taken_by = static_cast<int>(index);
  return buffer->memory.narrow(0, 0, arrays_[index].elements);
}

bool GradientScatter::has_gradients(const Array& array) const {
  return std::any_of(array.parameters.begin(), array.parameters.end(),
                     [&](std::size_t i) { return flat_.slice(parameters_[i].number).grad().defined(); });
}

// The shard becomes what its slices have from passes before: zero where they have none.
void GradientScatter::bring_gradients_in(const Array& array) {
  for (const auto i : array.parameters) {
    const auto& place = parameters_[i].place;
    const auto& gradient = flat_.slice(parameters_[i].number).grad();
    if (!gradient.defined()) {
      place.zero_();
    } else if (!gradient.is_same(place)) {
      place.copy_(gradient.detach());
    }
  }
}

// @collective
void GradientScatter::wait(std::size_t index) {
  auto& array = arrays_[index];
  if (!std::exchange(array.on_the_way, false)) return;
  {
    const Stopwatch waiting(times_.waiting);
    array.work.wait();
    if (sharding_.replicas != nullptr) sharding_.replicas->all_reduce(array.incoming, comm::ReduceOp::mean).wait();
  }
  for (auto& buffer : buffers_) {
    if (buffer.taken_by == static_cast<int>(index)) buffer.taken_by = -1;
  }
  const Stopwatch copying(times_.copying);
  const auto incoming = std::exchange(array.incoming, at::Tensor());
  if (incoming.is_same(array.shard)) return;
  array.adds ? array.shard.add_(incoming) : array.shard.copy_(incoming);
}

void GradientScatter::finish() {
  if (!reached_) return;
  const at::NoGradGuard no_grad;
  const bool complete = !is_paused_();
  std::vector<std::string> names;
  if (complete) names = missing();
  while (next_ < order_.size()) start(order_[next_++]);
  for (const auto array : order_) wait(array);
  const auto marks = exchange_marks(!names.empty());
  send_leftovers(marks);
  publish(marks);
  if (!learned_) learn_order();
  end_pass(complete);
  if (!parallel_.options.find_unused_parameters && marks.back() > 0) throw_missing(parallel_.host, names);
  if (marks[marks.size() - 2] > 0) agree_on_order();
  if (after_reduction_) after_reduction_();
}

std::vector<std::string> GradientScatter::missing() const {
  std::vector<std::string> names;
  for (const auto& parameter : parameters_) {
    // zero_grad takes back what a paused pass has brought.
    const bool is_kept = parameter.used && flat_.slice(parameter.number).grad().defined();
    if (!parameter.reached && !is_kept && parameter.tensor.requires_grad()) names.push_back(parameter.name);
  }
  return names;
}

std::size_t GradientScatter::count_learning() const {
  return static_cast<std::size_t>(std::count_if(parameters_.begin(), parameters_.end(),
                                                [](const auto& one) { return one.tensor.requires_grad(); }));
}

// Of each parameter, whether backward has come to it; of each array, whether some of it is left; the votes; whether
// backward came in a new order; and last whether something is missing. All ranks learn the sums. @collective
std::vector<float> GradientScatter::exchange_marks(bool misses_some) {
  std::vector<float> marks;
  for (const auto& parameter : parameters_) marks.push_back(parameter.reached ? 1 : 0);
  for (const auto& array : arrays_) {
    const bool left = std::any_of(array.parameters.begin(), array.parameters.end(),
                                  [&](std::size_t i) { return parameters_[i].waits; });
    marks.push_back(left ? 1 : 0);
  }
  if (parallel_.votes != nullptr) parallel_.votes->append_to(marks);
  const bool compares_orders = sharding_.stage == 3 && !parallel_.options.find_unused_parameters;
  marks.push_back(compares_orders && arrivals_.is_new(count_learning()) ? 1 : 0);
  marks.push_back(misses_some ? 1 : 0);
  const Stopwatch waiting(times_.waiting);
  add_over_ranks(marks);
  if (parallel_.votes != nullptr)
    parallel_.votes->hear(std::span(marks).subspan(parameters_.size() + arrays_.size(), StepVotes::marks));
  return marks;
}

// @collective
void GradientScatter::add_over_ranks(std::vector<float>& marks) {
  if (parallel_.marks == Marks::from_host_to_host) return mpi::all_reduce(parallel_.host, std::span(marks), MPI_SUM);
  marks_.copy_(at::from_blob(marks.data(), {marks_.numel()}, at::kFloat));
  parallel_.communicator.all_reduce(marks_, comm::ReduceOp::sum).wait();
  const auto seen = marks_.contiguous();
  std::copy_n(seen.const_data_ptr<float>(), marks.size(), marks.begin());
}

// @collective
void GradientScatter::send_leftovers(const std::vector<float>& marks) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (marks[parameters_.size() + i] == 0) continue;
    arrays_[i].late = true;
    start(i);
    wait(i);
  }
  put_late_ones_last();
}

// Where no rank has a gradient, slices keep what they had.
void GradientScatter::publish(const std::vector<float>& marks) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& parameter = parameters_[i];
    if (marks[i] == 0 || !parameter.tensor.requires_grad()) continue;
    auto& gradient = flat_.slice(parameter.number).mutable_grad();
    if (!gradient.is_same(parameter.place)) gradient = parameter.place;
  }
}

void GradientScatter::end_pass(bool complete) {
  parallel_.in_common.close();
  for (auto& array : arrays_) {
    array.arrived = 0;
    array.sent = false;
  }
  for (auto& parameter : parameters_) {
    parameter.reached = false;
    if (complete) parameter.used = false;
  }
  arrivals_.close_pass(count_learning());
  completed_.clear();
  next_ = 0;
  reached_ = false;
  end_.forget();
  ++passes_;
}

// Rank 0's, so that it is the same on all. @collective
void GradientScatter::learn_order() {
  std::vector<int> order;
  std::vector<bool> seen(arrays_.size(), false);
  const auto take = [&](std::size_t array) {
    if (!seen[array]) order.push_back(static_cast<int>(array));
    seen[array] = true;
  };
  for (const auto array : completed_) take(array);
  for (std::size_t array = 0; array < arrays_.size(); ++array) take(array);
  mpi::broadcast_bytes(parallel_.host, order.data(), order.size() * sizeof(int), 0);
  order_.assign(order.begin(), order.end());
  put_late_ones_last();
  learned_ = true;
}

void GradientScatter::put_late_ones_last() {
  std::stable_partition(order_.begin(), order_.end(), [&](std::size_t array) { return !arrays_[array].late; });
}

// @collective
void GradientScatter::agree_on_order() {
  std::vector<std::string> names;
  for (const auto& parameter : parameters_) names.push_back(parameter.name);
  arrivals_.agree(parallel_.host, names);
}

void GradientScatter::clear() {
  for (const auto& parameter : parameters_) flat_.slice(parameter.number).mutable_grad().reset();
}

std::vector<std::vector<std::string>> GradientScatter::arrays() const {
  std::vector<std::vector<std::string>> names;
  for (const auto array : order_) {
    auto& list = names.emplace_back();
    for (const auto i : arrays_[array].parameters) list.push_back(parameters_[i].name);
  }
  return names;
}

}  // namespace hortator::train
