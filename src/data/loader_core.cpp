#include "data/loader_core.hpp"

#include <ATen/core/grad_mode.h>

#include <hortator/error.hpp>
#include <vector>

#include "base/text.hpp"

namespace hortator::data {
namespace {

void validate(const LoaderOptions& options) {
  if (options.prefetch < 0) {
    throw UsageError({.what = text::concat("prefetch is ", options.prefetch), .hint = "use 0 or more batches"});
  }
  if (options.workers < 1 || (options.workers > 1 && options.prefetch == 0)) {
    throw UsageError({.what = text::concat("workers is ", options.workers, " and prefetch is ", options.prefetch),
                      .why = "with a prefetch of 0 the loop reads by itself",
                      .hint = "use 1 or more workers, and a prefetch of 1 or more if there are several"});
  }
  if ((options.sampler && options.shuffle) || (options.order != ShuffleOrder::counter && !options.shuffle)) {
    throw UsageError({.what = options.sampler ? "a loader has a sampler and is to be shuffled, too"
                                              : "a loader has an order of shuffling, but is not to be shuffled",
                      .hint = "the order is of `shuffle`, and a sampler is in place of it"});
  }
}

void validate(const LoaderOptions& options, const BatchSource& source) {
  if (options.workers == 1 || source.is_shareable()) return;
  throw UsageError({.what = text::concat("a loader was to read a data set by ", options.workers, " workers at once"),
                    .why = "its get() or get_batch(), or the function that joins samples, is not const: it may change "
                           "what another thread is using",
                    .hint = "make it const and safe for several threads, or use one worker"});
}

std::shared_ptr<const Sampler> sampler_of(const LoaderOptions& options) {
  if (options.sampler) return options.sampler;
  if (!options.shuffle) return sequential_sampler();
  return options.order == ShuffleOrder::randperm ? randperm_sampler() : counter_sampler();
}

void validate(const LoaderBinding& binding) {
  if (binding.world < 1 || binding.rank < 0 || binding.rank >= binding.world || binding.parts < 1) {
    throw UsageError({.what = text::concat("a loader was bound to rank ", binding.rank, " of ", binding.world)});
  }
}

}  // namespace

/// A pass: its plan, and the thread that reads along it.
struct LoaderCore::Running {
  BatchShard shard;
  std::unique_ptr<const Order> order;
  std::int64_t step = 0;
  std::unique_ptr<Prefetcher> reader;  // last: its thread reads the rest
};

LoaderCore::LoaderCore(std::unique_ptr<BatchSource> source, const LoaderOptions& options)
    : source_(std::move(source)), options_(options), sampler_(sampler_of(options)) {
  validate(options_);
  validate(options_, *source_);
  shard();
}

LoaderCore::~LoaderCore() = default;

// A single rank's last batch has nobody to be even with: it stays short, as the reference's.
BatchShard LoaderCore::shard(const LoaderBinding& binding, std::int64_t start) const {
  return BatchShard({.samples = sampler_->epoch_size(dataset_size()),
                     .start = start,
                     .batch_size = options_.batch_size,
                     .rank = binding.rank,
                     .world = binding.world,
                     .parts = binding.parts,
                     .split = binding.split_batches,
                     .even = binding.even_batches && binding.world * binding.parts > 1,
                     .drop_last = options_.drop_last});
}

std::unique_ptr<const Order> LoaderCore::order() const {
  return sampler_->order({.dataset_size = dataset_size(), .seed = seed(), .epoch = epoch_});
}

std::uint64_t LoaderCore::seed() const { return loaded_seed_.value_or(options_.seed.value_or(binding_.seed)); }

std::uint64_t LoaderCore::begin() {
  if (binding_.check_alive) binding_.check_alive();
  running_.reset();
  const std::int64_t start = resuming_ ? position_ : 0;
  running_ = start_running(start);
  start_ = position_ = start;
  resuming_ = at_end_ = in_last_step_ = false;
  handed_out_ = 0;
  started_ = std::chrono::steady_clock::now();
  return ++passes_;
}

std::unique_ptr<LoaderCore::Running> LoaderCore::start_running(std::int64_t start) {
  auto running =
      std::make_unique<Running>(Running{.shard = shard(binding_, start), .order = order(), .reader = nullptr});
  auto read_step = [this, &plan = *running](std::int64_t step) { return read(plan, step); };
  const Ahead ahead{.batches = binding_.before_batch ? 0 : options_.prefetch, .workers = options_.workers};
  running->reader = std::make_unique<Prefetcher>(read_step, running->shard.size(), ahead);
  return running;
}

std::shared_ptr<void> LoaderCore::read(const Running& running, std::int64_t step) {
  const at::NoGradGuard no_grad;
  auto batch = source_->read(samples_at(*running.order, running.shard.batch(step), dataset_size()));
  if (options_.pin_memory && binding_.device_placement && binding_.device.is_cuda()) source_->pin(batch.get());
  return batch;
}

std::shared_ptr<void> LoaderCore::next(std::uint64_t pass) {
  if (pass != passes_ || !running_) {
    throw UsageError({.what = "this loop over a data loader has lost its pass",
                      .why = "another loop over the same loader began, its state was loaded, or reading failed",
                      .hint = "loop over two loaders, or leave the loop with break"});
  }
  if (running_->step == running_->shard.size()) {
    finish();
    return nullptr;
  }
  try {
    return take();
  } catch (...) {
    running_.reset();
    throw;
  }
}

std::shared_ptr<void> LoaderCore::take() {
  const auto& shard = running_->shard;
  if (binding_.before_batch)
    binding_.before_batch({.epoch = epoch_, .position = position_, .place = shard.place(running_->step)});
  auto batch = running_->reader->next();
  if (binding_.device_placement) source_->place(batch.get(), {binding_.device, binding_.non_blocking});
  handed_out_ = ++running_->step;
  position_ = shard.consumed(handed_out_);
  at_end_ = handed_out_ == shard.size();
  in_last_step_ = handed_out_ + binding_.parts > shard.size();
  return batch;
}

void LoaderCore::finish() {
  if (binding_.before_batch) binding_.before_batch({.epoch = epoch_, .position = position_, .place = -1});
  running_.reset();
  ++epoch_;
  position_ = 0;
}

void LoaderCore::leave(std::uint64_t pass) noexcept {
  if (pass == passes_) running_.reset();
}

void LoaderCore::refuse_in_loop(std::string_view deed) const {
  if (!running_) return;
  throw UsageError({.what = text::concat(deed, " inside a loop over the loader"), .hint = "do it before the loop"});
}

void LoaderCore::bind(const LoaderBinding& binding) {
  validate(binding);
  refuse_in_loop("a data loader was prepared");
  shard(binding, 0);
  binding_ = binding;
  bound_ = true;
}

void LoaderCore::set_even_batches(bool even) {
  if (even == binding_.even_batches) return;
  refuse_in_loop("even_batches was changed");
  binding_.even_batches = even;
}

void LoaderCore::set_epoch(std::int64_t epoch) {
  refuse_in_loop("set_epoch was called");
  if (epoch == epoch_) return;
  epoch_ = epoch;
  position_ = 0;
  resuming_ = false;
}

StateDict LoaderCore::state() const {
  StateDict state;
  state.put("seed", seed());
  state.put("epoch", epoch_);
  state.put("position", position_);
  state.put("order", sampler_->name());
  state.put("dataset_size", dataset_size());
  return state;
}

void LoaderCore::load(const StateDict& state) {
  const auto position = state.get<std::int64_t>("position");
  if (position != 0) check_same_samples(state);
  running_.reset();
  loaded_seed_ = state.get<std::uint64_t>("seed");
  epoch_ = state.get<std::int64_t>("epoch");
  position_ = position;
  resuming_ = true;
}

void LoaderCore::check_same_samples(const StateDict& state) const {
  const auto samples = state.get<std::int64_t>("dataset_size");
  const auto order = state.get<std::string>("order");
  const auto position = state.get<std::int64_t>("position");
  const auto last = sampler_->epoch_size(dataset_size());
  if (samples == dataset_size() && order == sampler_->name() && position > 0 && position <= last) return;
  throw Error(
      {.what = text::concat("the loader's saved position is ", position, " of ", samples, " samples in ", order,
                            " order, but the data set has ", dataset_size(), " in ", sampler_->name(), " order"),
       .why = "the rest of the epoch would be other samples than were left",
       .hint = "resume with the data set, the shuffle option and the sampler that the checkpoint was made with"});
}

std::int64_t LoaderCore::remainder() const { return shard(binding_, start_).remainder(); }

std::int64_t LoaderCore::new_samples() const { return shard(binding_, start_).new_samples(handed_out_ - 1); }

}  // namespace hortator::data
