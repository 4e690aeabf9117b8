#include "parallel/zero/gradient_scatter.hpp"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>

#include "core/time.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "paging/stores/scratch.hpp"
#include "parallel/data_parallel/gradient_faults.hpp"

namespace hortator::parallel {

GradientScatter::GradientScatter(const ShardedModel& model, const DataParallel& parallel,
                                 std::function<bool()> is_paused)
    : GradientPass(parallel), model_(model), sharding_(*parallel.sharding), is_paused_(std::move(is_paused)) {
  // Each rank has its own file: a full disk must not leave the others waiting.
  mpi::all_or_none(parallel_->host, [this] { make_arrays(); });
  buffers_.emplace(arrays_);
  hook();
}

void GradientScatter::join_pass() {
  if (!arrays_.empty()) begin();
}

void GradientScatter::make_arrays() {
  for (const auto& [parameters, ranks] : model_.groups()) make_arrays(*parameters, ranks);
}

void GradientScatter::make_arrays(const FlatParameters& parameters, const ShardRanks& ranks) {
  const auto& plan = parameters.plan();
  for (std::size_t flat = 0; flat < plan.flats.size(); ++flat) {
    const auto first = plan.flats[flat].items.front();
    if (!parameters.is_trained(first)) continue;
    first_.push_back(parameters_);
    arrays_.emplace_back(parameters, flat, new_shard(plan.part_elements(flat), parameters.slice(first)), all_, ranks);
    parameters_ += arrays_.back().members().size();
  }
}

// In the moments' folder, if there is one: then only what is in use is in memory. On a device shards stay there.
at::Tensor GradientScatter::new_shard(std::int64_t elements, const at::Tensor& like) const {
  const auto& folder = sharding_.moments.folder;
  if (folder.empty() || !like.is_cpu()) return at::zeros({elements}, like.options().requires_grad(false));
  return paging::zeros_in_scratch(folder, elements, like.scalar_type());
}

void GradientScatter::hook() {
  GradientScatter::learn_again();
  for (std::size_t array = 0; array < arrays_.size(); ++array) {
    const auto& members = arrays_[array].members();
    for (std::size_t i = 0; i < members.size(); ++i)
      hooks_.emplace_back(members[i].tensor, [this, array, i] { on_gradient(array, i); });
  }
}

void GradientScatter::on_gradient(std::size_t index, std::size_t i) {
  const at::NoGradGuard no_grad;
  auto& array = arrays_[index];
  auto& member = array.members()[i];
  check_dense(member.name, member.tensor.grad());
  begin();
  member.used = true;
  if (!std::exchange(member.reached, true)) arrivals_.note(first_[index] + i);
  if (next_ > 0) {
    for (const auto& group : model_.groups()) group.ranks.group.advance();
  }
  if (!array.note(member)) return;
  completed_.push_back(index);
  start_full_arrays();
}

// Ranks that leave parameters out start an array in reduce() only, which they begin together: no rank may wait for them
// before, and not for a free buffer.
bool GradientScatter::may_start(const GradientArray& array) const {
  if (!parallel_->options.find_unused_parameters) return true;
  return buffers_->is_next_free(array) && !array.group().traits().waits_at_once && may_send_early();
}

// In the first pass the order is a guess: arrays that are complete out of turn wait for the others.
void GradientScatter::start_full_arrays() {
  while (next_ < order_.size()) {
    const auto& array = arrays_[order_[next_]];
    if (array.is_late() || !array.is_full() || !may_start(array)) return;
    start(order_[next_++]);
  }
}

// @collective
void GradientScatter::start(std::size_t index) {
  parallel_->common_pass.note_sent(index);
  auto& array = arrays_[index];
  const auto buffer = take_buffer(array);
  {
    const core::Stopwatch copying(times_.copying);
    array.pack(buffer);
  }
  const core::Stopwatch starting(times_.starting);
  array.start(buffer, /*with_replicas=*/!parallel_->within_shards);
}

// Waits for the array that travels in it.
at::Tensor GradientScatter::take_buffer(GradientArray& array) {
  auto& buffer = buffers_->next(array);
  if (buffer.taken_by != nullptr) wait(*buffer.taken_by);
  buffer.taken_by = &array;
  return buffer.memory.narrow(0, 0, array.elements());
}

// @collective
void GradientScatter::wait(GradientArray& array) {
  if (!array.is_on_the_way()) return;
  {
    const core::Stopwatch waiting(times_.waiting);
    array.wait();
  }
  buffers_->free(array);
  const core::Stopwatch copying(times_.copying);
  array.unpack();
}

void GradientScatter::reduce() {
  const bool complete = !is_paused_();
  std::vector<std::string> names;
  if (complete) names = missing();
  while (next_ < order_.size()) start(order_[next_++]);
  for (const auto array : order_) wait(arrays_[array]);
  const auto all = exchange_signals(!names.empty());
  send_leftovers(all);
  publish(all);
  if (!learned_) learn_order();
  end_pass(complete);
  require_complete(all, names);
  if (all.new_order) agree_on_order();
}

std::vector<std::string> GradientScatter::missing() const {
  std::vector<std::string> names;
  for (const auto& array : arrays_) {
    for (const auto& member : array.members()) {
      // zero_grad may have removed what a paused pass has brought.
      const bool is_kept = member.used && array.gradient(member).defined();
      if (!member.reached && !is_kept && member.tensor.requires_grad()) names.push_back(member.name);
    }
  }
  return names;
}

std::vector<std::string> GradientScatter::unsent() const {
  if (next_ == order_.size() || is_paused_()) return {};
  return missing();
}

std::size_t GradientScatter::count_learning() const {
  std::size_t learning = 0;
  for (const auto& array : arrays_) {
    for (const auto& member : array.members()) learning += member.tensor.requires_grad() ? 1 : 0;
  }
  return learning;
}

// All signals, whatever the options: the message's length is fixed at construction.
StepSignals::Layout GradientScatter::layout() const {
  return {.missing = true,
          .new_order = true,
          .votes = parallel_->votes != nullptr,
          .parameters = parameters_,
          .arrays = arrays_.size()};
}

// @collective
StepSignals GradientScatter::exchange_signals(bool is_missing_some) {
  const bool compares_orders = sharding_.stage == 3 && !parallel_->options.find_unused_parameters;
  StepSignals mine{.missing = is_missing_some, .new_order = compares_orders && arrivals_.is_new(count_learning())};
  for (const auto& array : arrays_) {
    for (const auto& member : array.members()) mine.used.push_back(member.reached);
    mine.leftovers.push_back(array.has_leftovers());
  }
  auto message = encode(std::move(mine));
  const core::Stopwatch waiting(times_.waiting);
  add_over_ranks(message);
  return decode(message);
}

// @collective
void GradientScatter::add_over_ranks(std::vector<float>& message) {
  if (sends_signals_by_host()) return add_by_host(message);
  if (!message_.defined())
    message_ = parallel_->communicator.allocate(static_cast<std::int64_t>(message.size()), at::kFloat);
  message_.copy_(at::from_blob(message.data(), {message_.numel()}, at::kFloat));
  parallel_->communicator.all_reduce(message_, comm::ReduceOp::sum).wait();
  const auto sum = message_.contiguous();
  std::copy_n(sum.const_data_ptr<float>(), message.size(), message.begin());
}

// @collective
void GradientScatter::send_leftovers(const StepSignals& all) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (!all.leftovers[i]) continue;
    arrays_[i].set_late(true);
    start(i);
    wait(arrays_[i]);
  }
  put_late_ones_last();
}

// Slices keep their gradient where no rank has a new one.
void GradientScatter::publish(const StepSignals& all) {
  auto used = all.used.begin();
  for (const auto& array : arrays_) {
    for (const auto& member : array.members()) {
      if (*used++ && member.tensor.requires_grad()) array.publish(member);
    }
  }
}

void GradientScatter::end_pass(bool complete) {
  end();
  for (auto& array : arrays_) array.end_pass(complete);
  arrivals_.close_pass(count_learning());
  completed_.clear();
  next_ = 0;
  ++passes_;
}

void GradientScatter::drop() {
  for (const auto index : order_) {
    auto& array = arrays_[index];
    if (array.is_on_the_way()) array.wait();
    buffers_->free(array);
    array.drop_pass();
  }
  arrivals_.drop_pass();
  completed_.clear();
  next_ = 0;
}

void GradientScatter::learn_again() {
  message_.reset();
  order_.resize(arrays_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  learned_ = false;
  arrivals_ = {};
  for (auto& array : arrays_) array.set_late(false);
  if (!arrays_.empty()) parallel_->common_pass.expect_gradients();
}

// Takes rank 0's order, so that it is the same on all ranks. @collective
void GradientScatter::learn_order() {
  std::vector<int> order;
  std::vector<bool> seen(arrays_.size(), false);
  const auto take = [&](std::size_t array) {
    if (!seen[array]) order.push_back(static_cast<int>(array));
    seen[array] = true;
  };
  for (const auto array : completed_) take(array);
  for (std::size_t array = 0; array < arrays_.size(); ++array) take(array);
  mpi::broadcast_bytes(parallel_->host, order.data(), order.size() * sizeof(int), 0);
  order_.assign(order.begin(), order.end());
  put_late_ones_last();
  learned_ = true;
}

void GradientScatter::put_late_ones_last() {
  std::stable_partition(order_.begin(), order_.end(), [&](std::size_t array) { return !arrays_[array].is_late(); });
}

// @collective
void GradientScatter::agree_on_order() {
  std::vector<std::string> names;
  for (const auto& array : arrays_) {
    for (const auto& member : array.members()) names.push_back(member.name);
  }
  arrivals_.agree(parallel_->host, names);
}

void GradientScatter::clear() {
  for (const auto& array : arrays_) {
    for (const auto& member : array.members()) array.gradient(member).reset();
  }
}

std::vector<std::vector<std::string>> GradientScatter::arrays() const {
  std::vector<std::vector<std::string>> names;
  for (const auto array : order_) {
    auto& list = names.emplace_back();
    for (const auto& member : arrays_[array].members()) list.push_back(member.name);
  }
  return names;
}

}  // namespace hortator::parallel
