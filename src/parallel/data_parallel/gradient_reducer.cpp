#include "parallel/data_parallel/gradient_reducer.hpp"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <span>
#include <utility>

#include "core/text/text.hpp"
#include "core/time.hpp"
#include "mpi/collectives.hpp"
#include "parallel/data_parallel/gradient_faults.hpp"
#include "parallel/sparse/sparse_gradients.hpp"
#include "parallel/tensor/divided_tensor.hpp"

namespace hortator::parallel {
namespace {

BucketItem item_of(const at::Tensor& parameter, at::ScalarType travels_as, bool is_of_experts) {
  return {
      .elements = parameter.numel(),
      .element_bytes = static_cast<std::int64_t>(c10::elementSize(travels_as)),
      .kind = {.type = parameter.scalar_type(), .device = parameter.device().index(), .is_of_experts = is_of_experts}};
}

void check_can_travel(const NamedParameter& parameter, const DistributedDataParallelOptions& options) {
  if (at::isFloatingType(parameter.tensor.scalar_type()) || options.comm_hook == DDPCommunicationHookType::no) return;
  throw UsageError({.what = text::concat("The parameter ", text::quote(parameter.name), " is of type ",
                                         parameter.tensor.scalar_type()),
                    .why = "its gradient cannot travel in the type of ddp.comm_hook",
                    .hint = "set ddp.comm_hook to no"});
}

}  // namespace

GradientReducer::GradientReducer(std::vector<NamedParameter> parameters, const DataParallel& parallel)
    : GradientPass(parallel) {
  // On one rank the average is the gradient itself.
  if (parallel_->communicator.size() > 1) hook(std::move(parameters));
}

void GradientReducer::hook(std::vector<NamedParameter> parameters) {
  for (auto& parameter : parameters) {
    if (!parameter.tensor.requires_grad()) {
      hooks_.emplace_back(parameter.tensor, [name = parameter.name] {
        throw UsageError({.what = text::concat("The parameter ", text::quote(name),
                                               " was frozen when it was prepared and gets gradients now"),
                          .why = "they are not averaged, so the ranks' models would drift apart",
                          .hint = "set requires_grad before prepare(); after that it can be frozen and unfrozen"});
      });
      continue;
    }
    check_can_travel(parameter, parallel_->options);
    const auto index = parameters_.size();
    hooks_.emplace_back(parameter.tensor, [this, index] { on_gradient(index); });
    parameters_.push_back({.name = std::move(parameter.name), .tensor = std::move(parameter.tensor)});
  }
  GradientReducer::learn_again();
}

void GradientReducer::on_gradient(std::size_t index) {
  const at::NoGradGuard no_grad;
  auto& parameter = parameters_[index];
  check_layout(parameter);
  ++arrivals_;
  parameter.used = true;
  if (is_paused()) return;
  if (begin()) start_pass();
  const int task = current_graph_task();
  outermost_ = std::min(outermost_, task);
  if (buckets_.empty()) return learn(index, task);
  if (parameter.sparse) return;  // averaged when backward is over
  auto& bucket = buckets_[parameter.bucket];
  if (bucket.was_started()) {
    throw UsageError(
        {.what = text::concat("Backward reached ", text::quote(parameter.name), " again after its gradient was sent"),
         .why = "the second gradient would be missing in the average",
         .hint = "use it in the same way from the first pass on, or run this pass under no_sync"});
  }
  if (parameter.late || task != outermost_) return;
  {
    const core::Stopwatch copying(times_.copying);
    bucket.fill(parameter.slot);
  }
  start_full_buckets();
  const core::Stopwatch starting(times_.starting);
  if (next_bucket_ > 0) parallel_->communicator.advance();
}

// Sharded optimizers step slices, which have no rows.
void GradientReducer::check_layout(const Parameter& parameter) const {
  const auto& gradient = parameter.tensor.grad();
  const bool is_sparse = gradient.layout() != at::kStrided;
  if (is_sparse && (parallel_->sharding != nullptr || is_divided(parameter.tensor) ||
                    gradient.layout() != at::kSparse || gradient.sparse_dim() != 1))
    check_dense(parameter.name, gradient);
  if (buckets_.empty() || is_sparse == parameter.sparse) return;
  throw UsageError({.what = text::concat("The gradient of ", text::quote(parameter.name), " is ",
                                         is_sparse ? "sparse, and was dense" : "dense, and was sparse", " before"),
                    .why = "in the first backward pass the ranks agree on how each gradient travels",
                    .hint = "use the parameter in the same way in all passes"});
}

void GradientReducer::join_pass() {
  if (parameters_.empty() || is_paused()) return;
  if (begin()) start_pass();
}

void GradientReducer::start_pass() {
  outermost_ = parallel_->pass.outermost();
  if (outermost_ == no_graph_task) outermost_ = current_graph_task();
  if (buckets_.empty()) return;
  for (auto& parameter : parameters_) {
    if (!parameter.tensor.requires_grad() && !parameter.sparse) buckets_[parameter.bucket].fill_unused(parameter.slot);
  }
}

void GradientReducer::learn(std::size_t index, int task) {
  auto& parameter = parameters_[index];
  parameter.sparse = parameter.tensor.grad().is_sparse();
  if (parameter.task == no_graph_task) {
    parameter.task = task;
    arrived_.push_back(static_cast<int>(index));
  } else {
    parameter.late = true;
  }
}

bool GradientReducer::is_of_experts(const at::Tensor& parameter) const {
  return parallel_->holders != nullptr && is_divided(parameter);
}

// A rank whose first pass has not reached a parameter learns from the others whether its gradients are sparse.
// @collective
void GradientReducer::agree_on_sparse() {
  std::vector<int> flags;
  for (const auto& parameter : parameters_) flags.push_back(parameter.sparse ? 1 : 0);
  mpi::all_reduce(parallel_->host, std::span(flags), mpi::Op::max);
  for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].sparse = flags[i] == 1;
}

// @collective
void GradientReducer::make_bucket(std::vector<NamedParameter> members, bool is_last) {
  const BucketFormat format{
      .travel_type = travel_type(parallel_->options, members.front().tensor.scalar_type()),
      .error_feedback = parallel_->options.error_feedback,
      .signals = is_last && !sends_signals_by_host() ? static_cast<std::int64_t>(message_size()) : 0,
      .hook = &parallel_->average(),
      .index = static_cast<std::int64_t>(buckets_.size())};
  auto& ranks = is_of_experts(members.front().tensor) ? parallel_->holders_of_experts() : parallel_->communicator;
  ranks_of_.push_back(&ranks);
  buckets_.emplace_back(ranks, std::move(members), format);
}

// @collective
void GradientReducer::plan() {
  auto order = arrival_order(arrived_, static_cast<int>(parameters_.size()));
  mpi::broadcast_bytes(parallel_->host, order.data(), order.size() * sizeof(int), 0);
  agree_on_sparse();
  std::erase_if(order, [&](int index) { return parameters_[static_cast<std::size_t>(index)].sparse; });
  std::vector<BucketItem> items;
  for (auto& parameter : parameters_) {
    items.push_back(item_of(parameter.tensor, travel_type(parallel_->options, parameter.tensor.scalar_type()),
                            is_of_experts(parameter.tensor)));
    if (parameter.task != no_graph_task && parameter.task != outermost_) parameter.late = true;
  }
  const auto plans = plan_buckets(items, order, bucket_limits(parallel_->options));
  for (const auto& indices : plans) {
    std::vector<NamedParameter> members;
    for (const int index : indices) {
      auto& parameter = parameters_[static_cast<std::size_t>(index)];
      parameter.bucket = buckets_.size();
      parameter.slot = members.size();
      members.push_back({.name = parameter.name, .tensor = parameter.tensor});
    }
    make_bucket(std::move(members), buckets_.size() + 1 == plans.size());
  }
  // Without dense gradients the signals still need a bucket.
  if (plans.empty())
    make_bucket({{.name = "", .tensor = at::zeros({1}, at::TensorOptions(parallel_->device))}}, /*is_last=*/true);
}

// Ranks that leave parameters out start a bucket in finish() only, which they begin together: no rank may wait for them
// before.
bool GradientReducer::may_start_next() const {
  const auto& options = parallel_->options;
  if (!options.find_unused_parameters) return true;
  const auto traits = ranks_of_[next_bucket_]->traits();
  const bool waits = traits.waits_at_once || parallel_->average() ||
                     (traits.max_under_way > 0 && next_bucket_ >= traits.max_under_way);
  return !waits && may_send_early();
}

// The last bucket waits for finish(): its signals say which gradients this rank has.
void GradientReducer::start_full_buckets() {
  while (next_bucket_ + 1 < buckets_.size() && buckets_[next_bucket_].is_full()) {
    if (!may_start_next()) return;
    start_next_bucket();
  }
}

// @collective
void GradientReducer::start_next_bucket() {
  if (uneven_ != nullptr) uneven_->announce(UnevenInputs::Collective::reduce_bucket, model_);
  parallel_->common_pass.note_sent(next_bucket_);
  auto& ranks = *ranks_of_[next_bucket_];
  auto& bucket = buckets_[next_bucket_++];
  {
    const core::Stopwatch copying(times_.copying);
    bucket.pack();
  }
  const core::Stopwatch starting(times_.starting);
  bucket.start(ranks);
}

void GradientReducer::reduce() {
  if (buckets_.empty()) {
    if (uneven_ != nullptr) uneven_->announce(UnevenInputs::Collective::plan_buckets, model_);
    plan();
  }
  const auto missing = fill_remaining();
  send_signals(!missing.empty());
  while (next_bucket_ < buckets_.size()) start_next_bucket();
  const auto all = wait_for_all();
  publish(all);
  average_sparse(all, /*has_own=*/true);
  end_pass();
  require_complete(all, missing);
}

void GradientReducer::release() {
  for (std::size_t i = 0; i < next_bucket_; ++i) buckets_[i].release();
}

void GradientReducer::drop() {
  for (auto& bucket : buckets_) {
    bucket.wait();
    bucket.reset();
  }
  next_bucket_ = 0;
  host_message_.clear();
  if (buckets_.empty()) learn_again();
}

void GradientReducer::learn_again() {
  buckets_.clear();
  ranks_of_.clear();
  arrived_.clear();
  for (auto& parameter : parameters_) {
    parameter.task = no_graph_task;
    parameter.late = parameter.sparse = false;
  }
  if (!parameters_.empty()) parallel_->common_pass.expect_gradients();
}

bool GradientReducer::has_only_sparse() const {
  return std::ranges::all_of(parameters_, [](const Parameter& parameter) { return parameter.sparse; });
}

// Returns the names of parameters that must have a gradient and got none, in this pass or under no_sync.
std::vector<std::string> GradientReducer::fill_remaining() {
  const core::Stopwatch copying(times_.copying);
  std::vector<std::string> missing;
  for (auto& parameter : parameters_) {
    auto& bucket = buckets_[parameter.bucket];
    if (!parameter.sparse && bucket.has(parameter.slot)) continue;
    parameter.used = parameter.used && parameter.tensor.grad().defined();  // zero_grad may have removed it
    if (!parameter.used && parameter.tensor.requires_grad()) missing.push_back(parameter.name);
    if (parameter.sparse) continue;
    parameter.used ? bucket.fill(parameter.slot) : bucket.fill_unused(parameter.slot);
  }
  if (has_only_sparse()) buckets_.back().fill_unused(0);
  return missing;
}

std::vector<std::string> GradientReducer::unsent() const {
  std::vector<std::string> names;
  if (next_bucket_ == buckets_.size()) return names;  // or there are none yet, and no rank waits within backward
  for (const auto& parameter : parameters_) {
    if (!parameter.sparse && buckets_[parameter.bucket].has(parameter.slot)) continue;
    const bool is_kept = parameter.used && parameter.tensor.grad().defined();
    if (!is_kept && parameter.tensor.requires_grad()) names.push_back(parameter.name);
  }
  return names;
}

// Where parameters may be unused, all ranks learn which ones are; otherwise only whether one is missing.
StepSignals::Layout GradientReducer::layout() const {
  const bool finds_unused = parallel_->options.find_unused_parameters;
  return {.missing = !finds_unused,
          .votes = parallel_->votes != nullptr,
          .parameters = finds_unused ? parameters_.size() : 0};
}

void GradientReducer::send_signals(bool is_missing_some) {
  StepSignals mine{.missing = is_missing_some};
  for (const auto& parameter : parameters_) mine.used.push_back(parameter.used);
  auto message = encode(std::move(mine));
  if (sends_signals_by_host()) {
    host_message_ = std::move(message);
  } else {
    buckets_.back().set_signals(message);
  }
}

// @collective
StepSignals GradientReducer::wait_for_all() {
  const core::Stopwatch waiting(times_.waiting);
  for (auto& bucket : buckets_) bucket.wait();
  return decode(sends_signals_by_host() ? exchange_by_host() : buckets_.back().signals());
}

// A rank without batches has set no signals and votes for nothing: its message is zeros. @collective
std::vector<float> GradientReducer::exchange_by_host() {
  auto message = std::exchange(host_message_, {});
  message.resize(message_size());
  add_by_host(message);
  return message;
}

bool GradientReducer::learns(std::size_t index, const StepSignals& all) const {
  const bool is_used = !parallel_->options.find_unused_parameters || all.used[index];
  return is_used && parameters_[index].tensor.requires_grad();
}

void GradientReducer::publish(const StepSignals& all) {
  const core::Stopwatch copying(times_.copying);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& parameter = parameters_[i];
    if (parameter.sparse) continue;
    auto& bucket = buckets_[parameter.bucket];
    learns(i, all) ? bucket.publish(parameter.slot) : bucket.keep(parameter.slot);
  }
}

// A rank without batches has no gradients of its own, and needs no averages. @collective
void GradientReducer::average_sparse(const StepSignals& all, bool has_own) {
  const core::Stopwatch waiting(times_.waiting);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = parameters_[i];
    if (!parameter.sparse || !learns(i, all)) continue;
    const auto mine = has_own ? parameter.tensor.grad() : at::Tensor();
    auto average = average_rows(parallel_->communicator, parameter.tensor, mine);
    if (has_own) parameter.tensor.mutable_grad() = std::move(average);
  }
}

void GradientReducer::end_pass() {
  end();
  for (auto& bucket : buckets_) bucket.reset();
  for (auto& parameter : parameters_) parameter.used = false;
  next_bucket_ = 0;
}

void GradientReducer::announce_by(const UnevenInputs* uneven, int model) {
  uneven_ = uneven;
  model_ = model;
}

void GradientReducer::follow(UnevenInputs::Collective what) {
  const at::NoGradGuard no_grad;
  what == UnevenInputs::Collective::plan_buckets ? plan() : reduce_zeros();
}

// The averages are not used here: the model will be overwritten with that of a rank that still has batches.
void GradientReducer::reduce_zeros() {
  parallel_->common_pass.note_sent(next_bucket_);
  auto& bucket = buckets_[next_bucket_++];
  bucket.fill_with_zeros();
  bucket.start(parallel_->communicator);
  if (next_bucket_ < buckets_.size()) return;
  const auto all = wait_for_all();
  average_sparse(all, /*has_own=*/false);
  end_pass();
  require_complete(all, {});
}

std::vector<std::vector<std::string>> GradientReducer::buckets() const {
  std::vector<std::vector<std::string>> names(buckets_.size());
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    for (const auto& parameter : parameters_) {
      if (parameter.bucket == b && !parameter.sparse) names[b].push_back(parameter.name);
    }
  }
  return names;
}

}  // namespace hortator::parallel
