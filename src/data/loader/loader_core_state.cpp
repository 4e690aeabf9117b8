// The part of LoaderCore that saves and restores a loader's position.
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "data/loader/loader_core.hpp"

namespace hortator::data {
namespace {

constexpr std::int64_t unknown = -1;  // samples of a stream that does not know its length

}  // namespace

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
