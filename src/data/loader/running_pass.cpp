#include "data/loader/running_pass.hpp"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <limits>

#include "core/text/text.hpp"

namespace hortator::data {
namespace {

// What a rank says in place of a number of rows.
constexpr std::int64_t has_nothing = -1;  // not even to repeat
constexpr std::int64_t has_failed = -2;

std::int64_t steps_to_come(const BatchShard& shard, std::int64_t first) {
  if (shard.is_endless()) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(shard.size() - first, 0);
}

}  // namespace

RunningPass::RunningPass(const PassPlan& plan, const std::function<std::shared_ptr<StepReader>()>& reader,
                         const BatchSource& source, std::shared_ptr<Dispatcher> dispatcher)
    : deal_(plan.deal),
      steps_(plan.first_step),
      dispatcher_(std::move(dispatcher)),
      number_(dispatcher_ ? dispatcher_->enter() : 0),
      tell_all_(plan.tell_all) {
  // After a stream's end nothing is asked for any more, however far ahead the thread is.
  auto deliver = [deliver = way(reader, source), &source, lane = plan.lane, first = plan.first_step,
                  shard = deal_.shard()](std::int64_t i) mutable -> std::shared_ptr<void> {
    const at::NoGradGuard no_grad;
    if (first + i >= shard.size() && !shard.is_endless()) return std::make_shared<Delivery>();
    auto delivery = std::make_shared<Delivery>(deliver(first + i));
    if (lane && delivery->batch) delivery->arrival = lane->bring(delivery->batch.get(), source);
    if (delivery->samples != shard.spec().samples) shard = shard.of(delivery->samples);
    return delivery;
  };
  deliveries_ =
      std::make_unique<Prefetcher>(std::move(deliver), steps_to_come(deal_.shard(), plan.first_step), plan.ahead);
}

RunningPass::~RunningPass() {
  if (dispatcher_) dispatcher_->leave(number_);
}

Deliver RunningPass::way(const std::function<std::shared_ptr<StepReader>()>& reader, const BatchSource& source) {
  const auto& shard = deal_.shard();
  if (tell_all_) return read_alone(reader(), 0);  // a part has one rank
  if (!dispatcher_) return read_alone(reader(), shard.spec().rank);
  if (!dispatcher_->reads()) return receive(source, *dispatcher_, number_);
  return read_for_node(reader(), source, *dispatcher_, number_, !shard.is_endless());
}

bool RunningPass::at_end() {
  if (deal_.shard().is_endless() && !waiting_) waiting_ = take();
  return steps_ >= deal_.shard().size();
}

Delivery RunningPass::next() {
  auto delivery = waiting_ ? *std::exchange(waiting_, std::nullopt) : take();
  ++steps_;
  if (tell_all_) {
    // Whether this was the last step is known only when all ranks have looked at what they have for the next one.
    deal_.tell(std::move(told_));
    waiting_ = take();
  }
  return delivery;
}

Delivery RunningPass::take() {
  if (!tell_all_) return take_own();
  Delivery delivery;
  try {
    delivery = take_own();
  } catch (...) {
    tell_all_(has_failed);
    throw;
  }
  go_in_step(delivery.batch ? delivery.new_rows : has_nothing);
  return delivery;
}

void RunningPass::go_in_step(std::int64_t new_rows) {
  told_ = tell_all_(new_rows);
  const auto failed = std::find(told_.begin(), told_.end(), has_failed);
  if (failed != told_.end()) {
    const auto rank = static_cast<int>(failed - told_.begin());
    throw Error({.what = text::concat("rank ", rank, " could not read its part of the stream"),
                 .why = "the others go in step with it",
                 .hint = "its own message says what went wrong"})
        .on_rank(rank);
  }
  const auto& shard = deal_.shard();
  const auto most = *std::max_element(told_.begin(), told_.end());
  const auto least = *std::min_element(told_.begin(), told_.end());
  if (most <= 0 || (shard.spec().drop_last && least < shard.slice())) return deal_.learn(shard.begin_of(steps_));
  if (least != has_nothing) return;
  throw UsageError({.what = text::concat("the part of the stream for rank ",
                                         std::find(told_.begin(), told_.end(), has_nothing) - told_.begin(),
                                         " has no sample at all"),
                    .why = "its batches are filled up from its own first samples",
                    .hint = "use no more ranks than shard() has parts for, or dispatch_batches = true"});
}

Delivery RunningPass::take_own() {
  std::optional<activity::Collective> wait;
  if (dispatcher_ && !dispatcher_->reads()) wait.emplace(dispatcher_->count_batch());
  auto delivery = std::move(*std::static_pointer_cast<Delivery>(deliveries_->next()));
  if (dispatcher_ && dispatcher_->reads()) dispatcher_->count_batch();
  if (delivery.samples != deal_.shard().spec().samples) deal_.learn(delivery.samples);
  return delivery;
}

}  // namespace hortator::data
