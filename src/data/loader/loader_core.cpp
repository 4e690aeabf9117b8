#include "data/loader/loader_core.hpp"

#include <algorithm>
#include <atomic>
#include <hortator/error.hpp>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "data/loader/joined_reader.hpp"
#include "data/loader/loader_options.hpp"
#include "data/loader/step_reader.hpp"
#include "data/loader/stream_reader.hpp"
#include "machine/device/device.hpp"

namespace hortator::data {
namespace {

std::atomic<std::int64_t> taken_samples = 0;  // by all loaders of the process, as the next
std::atomic<std::int64_t> waited_ns = 0;      // by all loaders of the process, for the run's status

void validate(const LoaderBinding& binding) {
  if (binding.world < 1 || binding.rank < 0 || binding.rank >= binding.world || binding.parts < 1 ||
      binding.joined < 1) {
    throw UsageError({.what = text::concat("A loader was bound to rank ", binding.rank, " of ", binding.world)});
  }
}

/// The next batch. The end of reading is reported also when it fails: random numbers are put back.
Delivery read_next(RunningPass& pass, const LoaderBinding& binding) {
  Delivery delivery;
  try {
    delivery = pass.next();
  } catch (...) {
    if (binding.after_batch) binding.after_batch();
    throw;
  }
  if (binding.after_batch) binding.after_batch();
  return delivery;
}

constexpr std::int64_t unknown = -1;  // samples of a stream that does not know its length

}  // namespace

std::int64_t samples_taken() { return taken_samples; }

double waited() { return static_cast<double>(waited_ns) * 1e-9; }

LoaderCore::LoaderCore(Contents contents, const LoaderOptions& options)
    : contents_(std::move(contents)),
      options_(options),
      batches_(contents_.choose, contents_.samples ? contents_.samples->size() : 0),
      sampler_(sampler_of(options)) {
  check(options_, contents_);
  shard(binding_, 0);
  runtime::intercept_random_operators();
}

LoaderCore::~LoaderCore() = default;

const BatchSource& LoaderCore::source() const {
  return is_stream() ? static_cast<const BatchSource&>(*contents_.stream) : *contents_.samples;
}

std::optional<std::int64_t> LoaderCore::dataset_size() const {
  return is_stream() ? contents_.stream->size() : contents_.samples->size();
}

std::optional<std::int64_t> LoaderCore::size() const {
  if (!is_stream()) return shard(binding_, 0).size();
  const auto samples = binding_.gather_rows ? std::nullopt : dataset_size();
  return samples ? std::optional(shard(binding_, 0).of(*samples).size()) : std::nullopt;
}

std::int64_t LoaderCore::epoch_samples() const {
  return is_stream() ? endless : sampler_->epoch_size(known_samples(seed(), epoch_));
}

// On a single rank the last batch stays short, as in Hugging Face Accelerate. Ranks that share a stream or a reader are
// always even: they learn of its end together.
BatchShard LoaderCore::shard(const LoaderBinding& binding, std::int64_t start) const {
  const bool even = binding.even_batches || is_stream() || binding.dispatcher != nullptr;
  return BatchShard({.samples = epoch_samples(),
                     .start = start,
                     .batch_size = options_.batch_size * (binding.split_batches ? 1 : binding.joined),
                     .rank = binding.rank,
                     .world = binding.world,
                     .parts = binding.parts,
                     .split = binding.split_batches,
                     .even = even && binding.world * binding.parts * binding.joined > 1,
                     .spread = binding.dispatcher != nullptr,
                     .drop_last = options_.drop_last});
}

BatchShard LoaderCore::shard_of_parts(LoaderBinding binding, std::int64_t start) const {
  binding.parts *= std::exchange(binding.joined, 1);
  return shard(binding, start);
}

std::unique_ptr<const Order> LoaderCore::order() const {
  return sampler_->order({.dataset_size = known_samples(seed(), epoch_), .seed = seed(), .epoch = epoch_});
}

std::string LoaderCore::order_name() const {
  if (binding_.gather_rows) return text::concat("each of ", binding_.world, " ranks' own");
  return is_stream() ? "stream" : sampler_->name();
}

std::shared_ptr<const Listing> LoaderCore::listing() const {
  return std::make_shared<const Listing>(order(), known_samples(seed(), epoch_),
                                         batches_ ? batches_.of(seed(), epoch_) : nullptr);
}

std::uint64_t LoaderCore::seed() const { return loaded_seed_.value_or(options_.seed.value_or(binding_.seed)); }

DrawSeeds LoaderCore::draw_seeds() const {
  return DrawSeeds(core::mix(core::mix(seed(), binding_.number), static_cast<std::uint64_t>(epoch_)));
}

std::int64_t LoaderCore::first_step() const {
  return resuming_ ? shard(binding_, 0).size() - shard(binding_, position_).size() : 0;
}

std::uint64_t LoaderCore::begin(std::int64_t skip) {
  if (binding_.check_alive) binding_.check_alive();
  running_.reset();
  const std::int64_t begin = resuming_ ? position_ : 0;
  handed_out_ = std::max<std::int64_t>(skip - first_step(), 0);
  running_ = start(begin, handed_out_);
  latest_ = running_->distribution();
  if (!resuming_ || handed_out_ > 0) stream_state_ = nullptr;
  position_ = latest_->shard().consumed(handed_out_);
  resuming_ = at_end_ = in_last_step_ = false;
  started_ = std::chrono::steady_clock::now();
  return ++passes_;
}

std::unique_ptr<RunningPass> LoaderCore::start(std::int64_t start, std::int64_t first_step) {
  const auto listed = is_stream() ? nullptr : listing();
  const bool has_uploader =
      options_.pin_memory && binding_.device_placement && machine::kind_of(binding_.device) != nullptr;
  uploader_ = has_uploader ? std::make_shared<const DeviceUploader>(binding_.device) : nullptr;
  const PassPlan plan{.distribution = BatchDistribution(shard(binding_, start), listed),
                      .first_step = first_step,
                      .ahead = {.batches = binding_.before_batch ? 0 : options_.prefetch,
                                .workers = options_.workers,
                                .pause = binding_.dispatcher ? WorkerPause::never : pause_},
                      .uploader = uploader_,
                      .gather_rows = binding_.gather_rows};
  const auto read = [&]() -> std::shared_ptr<StepReader> {
    if (binding_.joined == 1) return reader(plan.distribution.shard(), listed);
    return std::make_shared<JoinedReader>(reader(shard_of_parts(binding_, start), listed), binding_.joined, source(),
                                          binding_.before_part);
  };
  return std::make_unique<RunningPass>(plan, read, source(), binding_.dispatcher);
}

std::shared_ptr<StepReader> LoaderCore::reader(const BatchShard& shard, std::shared_ptr<const Listing> listing) {
  if (!is_stream()) return std::make_shared<SampleReader>(*contents_.samples, shard, std::move(listing), draw_seeds());
  if (binding_.gather_rows) return reader_of_part(shard);
  StreamStart start{.epoch = epoch_, .state = resuming_ ? stream_state_ : nullptr, .seeds = draw_seeds()};
  return std::make_shared<StreamReader>(*contents_.stream, shard, std::move(start));
}

// The positions in the part count only this rank's samples.
std::shared_ptr<StepReader> LoaderCore::reader_of_part(const BatchShard& shard) {
  contents_.stream->shard(binding_.world, binding_.rank);
  const BatchShard own({.samples = endless, .start = shard.spec().start / binding_.world, .batch_size = shard.slice()});
  return std::make_shared<StreamReader>(
      *contents_.stream, own,
      StreamStart{.epoch = epoch_, .is_part = true, .rank = binding_.rank, .seeds = draw_seeds()});
}

std::shared_ptr<void> LoaderCore::next(std::uint64_t pass) {
  if (pass != passes_ || !running_) {
    throw UsageError({.what = "This loop over a data loader is no longer valid",
                      .why = "another loop over the same loader has begun, its state was loaded, or reading failed",
                      .hint = "use two loaders, or leave the first loop with break"});
  }
  try {
    if (!running_->at_end()) return take();
  } catch (...) {
    running_.reset();
    throw;
  }
  finish();
  return nullptr;
}

std::shared_ptr<void> LoaderCore::take() {
  const BatchTurn turn{.epoch = epoch_, .position = position_, .place = latest_->shard().virtual_rank(handed_out_)};
  if (binding_.before_batch) binding_.before_batch(turn);
  const auto before = std::chrono::steady_clock::now();
  auto delivery = read_next(*running_, binding_);
  waited_ns += (std::chrono::steady_clock::now() - before) / std::chrono::nanoseconds(1);
  bring_to_device(delivery);
  latest_ = running_->distribution();
  const auto& shard = latest_->shard();
  handed_out_ = running_->steps();
  const auto consumed = shard.consumed(handed_out_);
  taken_samples += std::max<std::int64_t>(0, consumed - position_);
  position_ = consumed;
  // The states of parts differ between ranks, so none is saved; resuming reads the samples again.
  stream_state_ = ends_step() && !binding_.gather_rows ? std::move(delivery.state) : nullptr;
  at_end_ = handed_out_ == shard.size();
  in_last_step_ = handed_out_ + binding_.parts > shard.size();
  return std::move(delivery.batch);
}

void LoaderCore::bring_to_device(const Delivery& delivery) const {
  if (delivery.arrival) return uploader_->hand_over(delivery.batch.get(), source(), *delivery.arrival);
  if (!binding_.device_placement) return;
  source().change(delivery.batch.get(), [&](const at::Tensor& tensor) {
    return placed(tensor, {.device = binding_.device, .non_blocking = binding_.non_blocking});
  });
}

void LoaderCore::finish() {
  if (binding_.before_batch) binding_.before_batch({.epoch = epoch_, .position = position_, .place = -1});
  if (handed_out_ == 0 && position_ == 0) warn_of_empty_epoch();
  pause_ = running_->hurries() ? WorkerPause::from_start : WorkerPause::when_hurried;
  running_.reset();
  ++epoch_;
  position_ = 0;
  stream_state_ = nullptr;
}

// Nothing else would show it: the epochs pass at once, and the run ends as if it had trained.
void LoaderCore::warn_of_empty_epoch() {
  if (std::exchange(warned_of_empty_epoch_, true) || binding_.rank != 0) return;
  const auto& shard = running_->distribution().shard();
  const auto samples = shard.spec().samples;
  if (samples == 0) {
    return log::warn("The ", is_stream() ? "stream" : "data set",
                     " of a data loader is empty: its epochs have no batches, and nothing is computed with it");
  }
  log::warn("A data loader has no batches: a step of all ranks takes ", shard.total_batch_size(),
            varies() ? " batches" : " samples",
            ", drop_last leaves out those that do not fill one, and there are only ", samples,
            ". Use a smaller batch_size, fewer ranks, or drop_last = false");
}

void LoaderCore::leave(std::uint64_t pass) noexcept {
  if (pass == passes_) running_.reset();
}

void LoaderCore::refuse_in_loop(std::string_view action) const {
  if (!running_) return;
  throw UsageError({.what = text::concat(action, " inside a loop over the loader"), .hint = "do it before the loop"});
}

void LoaderCore::bind(const LoaderBinding& binding) {
  validate(binding);
  refuse_in_loop("A data loader was prepared");
  if (binding.dispatcher && !source().can_travel()) throw_cannot_travel();
  if (binding.dispatcher && options_.workers > 1) {
    throw UsageError(
        {.what = text::concat("Dispatched batches cannot be read by ", options_.workers, " workers at once"),
         .why = "one thread reads them and sends them in order",
         .hint = "use one worker, or dispatch_batches = false"});
  }
  shard_of_parts(binding, 0);
  binding_ = binding;
  bound_ = true;
  latest_.reset();
}

void LoaderCore::set_even_batches(bool even) {
  if (even == binding_.even_batches) return;
  refuse_in_loop("even_batches was changed");
  binding_.even_batches = even;
  latest_.reset();
}

void LoaderCore::set_epoch(std::int64_t epoch) {
  refuse_in_loop("set_epoch was called");
  if (epoch == epoch_) return;
  epoch_ = epoch;
  position_ = 0;
  stream_state_ = nullptr;
  resuming_ = false;
}

StateDict LoaderCore::state() const {
  StateDict state;
  state.put("seed", seed());
  state.put("epoch", epoch_);
  state.put("position", position_);
  state.put("order", order_name());
  state.put("dataset_size", known_samples(seed(), epoch_));
  if (stream_state_) state.put_all("stream", *stream_state_);
  return state;
}

void LoaderCore::load(const StateDict& state) {
  if (state.get<std::int64_t>("position") != 0) check_same_samples(state);
  running_.reset();
  loaded_seed_ = state.get<std::uint64_t>("seed");
  epoch_ = state.get<std::int64_t>("epoch");
  position_ = state.get<std::int64_t>("position");
  const auto of_stream = state.under("stream");
  stream_state_ = of_stream.empty() ? nullptr : std::make_shared<const StateDict>(of_stream);
  resuming_ = true;
}

std::int64_t LoaderCore::known_samples(std::uint64_t seed, std::int64_t epoch) const {
  if (batches_) return static_cast<std::int64_t>(batches_.of(seed, epoch)->size());
  return dataset_size().value_or(unknown);
}

void LoaderCore::check_same_samples(const StateDict& state) const {
  const auto samples = state.get<std::int64_t>("dataset_size");
  const auto order = state.get<std::string>("order");
  const auto position = state.get<std::int64_t>("position");
  const auto here = known_samples(state.get<std::uint64_t>("seed"), state.get<std::int64_t>("epoch"));
  const auto last = is_stream() ? samples : sampler_->epoch_size(here);
  const bool is_within = position > 0 && (samples == unknown || position <= last);
  if (samples == here && order == order_name() && is_within) return;
  throw Error(
      {.what = text::concat("The loader's saved position is ", position, " of ", samples, " samples in ", order,
                            " order, but the data set has ", here, " in ", order_name(), " order"),
       .why = "the remaining samples of the epoch would differ from those that were left",
       .hint = "resume with the data set, the shuffle option and the sampler that the checkpoint was made with"});
}

}  // namespace hortator::data
