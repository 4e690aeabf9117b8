#include "data/loader/running_pass.hpp"

#include <ATen/core/grad_mode.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <limits>

#include "core/text/text.hpp"

namespace hortator::data {
namespace {

// Sent instead of a number of rows.
constexpr std::int64_t has_nothing = -1;  // the part has no sample, not even one to repeat
constexpr std::int64_t has_failed = -2;

std::int64_t steps_to_come(const BatchShard& shard, std::int64_t first) {
  if (shard.is_endless()) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(shard.size() - first, 0);
}

}  // namespace

DeviceUploader::DeviceUploader(c10::Device device)
    : device_(device.type()), stream_(device_.getStreamFromGlobalPool(device, /*isHighPriority=*/false)) {}

// The page-locked copies may be freed at once: their allocator waits for the stream that reads them.
c10::Event DeviceUploader::upload(void* batch, const BatchSource& source) const {
  const c10::StreamGuard guard(stream_);
  source.change(batch, [this](const at::Tensor& tensor) {
    return placed(pinned(tensor), {.device = stream_.device(), .non_blocking = true});
  });
  c10::Event arrival(stream_.device_type());
  arrival.record(stream_);
  return arrival;
}

void DeviceUploader::hand_over(void* batch, const BatchSource& source, const c10::Event& arrival) const {
  const auto user = device_.getStream(stream_.device());
  arrival.block(user);
  source.change(batch, [&](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.has_storage() && tensor.device() == user.device())
      device_.recordDataPtrOnStream(tensor.storage().data_ptr(), user);
    return tensor;
  });
}

RunningPass::RunningPass(const PassPlan& plan, const std::function<std::shared_ptr<StepReader>()>& reader,
                         const BatchSource& source, std::shared_ptr<Dispatcher> dispatcher)
    : distribution_(plan.distribution),
      steps_(plan.first_step),
      dispatcher_(std::move(dispatcher)),
      number_(dispatcher_ ? dispatcher_->enter() : 0),
      gather_rows_(plan.gather_rows) {
  // Reads nothing after the end of a stream, however far ahead the thread is.
  auto deliver = [deliver = make_deliver(reader, source), &source, uploader = plan.uploader, first = plan.first_step,
                  shard = distribution_.shard()](std::int64_t i) mutable -> std::shared_ptr<void> {
    const at::NoGradGuard no_grad;
    if (first + i >= shard.size() && !shard.is_endless()) return std::make_shared<Delivery>();
    auto delivery = std::make_shared<Delivery>(deliver(first + i));
    if (uploader && delivery->batch) delivery->arrival = uploader->upload(delivery->batch.get(), source);
    if (delivery->samples != shard.spec().samples) shard = shard.of(delivery->samples);
    return delivery;
  };
  deliveries_ = std::make_unique<Prefetcher>(std::move(deliver), steps_to_come(distribution_.shard(), plan.first_step),
                                             plan.ahead);
}

RunningPass::~RunningPass() {
  if (dispatcher_) dispatcher_->leave(number_);
}

Deliver RunningPass::make_deliver(const std::function<std::shared_ptr<StepReader>()>& reader,
                                  const BatchSource& source) {
  const auto& shard = distribution_.shard();
  if (gather_rows_) return read_alone(reader(), 0);  // a part has one rank
  if (!dispatcher_) return read_alone(reader(), shard.spec().rank);
  if (!dispatcher_->reads()) return receive(source, *dispatcher_, number_);
  return read_for_node(reader(), source, *dispatcher_, number_, !shard.is_endless());
}

bool RunningPass::at_end() {
  if (distribution_.shard().is_endless() && !waiting_) waiting_ = take();
  return steps_ >= distribution_.shard().size();
}

Delivery RunningPass::next() {
  auto delivery = waiting_ ? *std::exchange(waiting_, std::nullopt) : take();
  ++steps_;
  if (gather_rows_) {
    // Whether this was the last step is known only when all ranks have read the next one.
    distribution_.set_new_rows(std::move(rank_rows_));
    waiting_ = take();
  }
  return delivery;
}

Delivery RunningPass::take() {
  if (!gather_rows_) return take_own();
  Delivery delivery;
  try {
    delivery = take_own();
  } catch (...) {
    gather_rows_(has_failed);
    throw;
  }
  exchange_rows(delivery.batch ? delivery.new_rows : has_nothing);
  return delivery;
}

void RunningPass::exchange_rows(std::int64_t new_rows) {
  rank_rows_ = gather_rows_(new_rows);
  const auto failed = std::ranges::find(rank_rows_, has_failed);
  if (failed != rank_rows_.end()) {
    const auto rank = static_cast<int>(failed - rank_rows_.begin());
    throw Error({.what = text::concat("Rank ", rank, " could not read its part of the stream"),
                 .why = "all ranks read the same number of batches",
                 .hint = "see that rank's own message for the reason"})
        .on_rank(rank);
  }
  const auto& shard = distribution_.shard();
  const auto max_rows = *std::ranges::max_element(rank_rows_);
  const auto min_rows = *std::ranges::min_element(rank_rows_);
  if (max_rows <= 0 || (shard.spec().drop_last && min_rows < shard.slice()))
    return distribution_.set_samples(shard.begin_of(steps_));
  if (min_rows != has_nothing) return;
  throw UsageError(
      {.what = text::concat("The part of the stream for rank ",
                            std::ranges::find(rank_rows_, has_nothing) - rank_rows_.begin(), " has no samples"),
       .why = "its batches are filled up from its own first samples",
       .hint = "use no more ranks than shard() has parts for, or dispatch_batches = true"});
}

Delivery RunningPass::take_own() {
  std::optional<activity::Collective> wait;
  if (dispatcher_ && !dispatcher_->reads()) wait.emplace(dispatcher_->count_batch());
  auto delivery = std::move(*std::static_pointer_cast<Delivery>(deliveries_->next()));
  if (dispatcher_ && dispatcher_->reads()) dispatcher_->count_batch();
  if (delivery.samples != distribution_.shard().spec().samples) distribution_.set_samples(delivery.samples);
  return delivery;
}

}  // namespace hortator::data
