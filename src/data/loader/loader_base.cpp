#include <algorithm>
#include <hortator/datasets/loader_base.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "data/loader/loader_core.hpp"

namespace hortator {
namespace {

std::int64_t known(std::optional<std::int64_t> size) {
  if (size) return *size;
  throw UsageError({.what = "The number of samples of this loader's stream is not known",
                    .why = "the stream has no size(), or size() returns nothing",
                    .hint = "check has_size() first, or give the stream a size()"});
}

}  // namespace

LoaderBase::LoaderBase(data::Contents contents, const LoaderOptions& options)
    : core_(std::make_shared<data::LoaderCore>(std::move(contents), options)) {}

bool LoaderBase::has_size() const { return core_->size().has_value(); }
std::int64_t LoaderBase::size() const { return std::max<std::int64_t>(known(core_->size()) - skip_, 0); }
std::int64_t LoaderBase::dataset_size() const { return known(core_->dataset_size()); }
std::int64_t LoaderBase::batch_size() const { return core_->options().batch_size; }
std::int64_t LoaderBase::total_batch_size() const { return core_->total_batch_size(); }
bool LoaderBase::is_stream() const { return core_->is_stream(); }
bool LoaderBase::has_shards() const { return core_->has_shards(); }
bool LoaderBase::can_travel() const { return core_->source().can_travel(); }

std::int64_t LoaderBase::epoch() const { return core_->epoch(); }
void LoaderBase::set_epoch(std::int64_t epoch) { core_->set_epoch(epoch); }

std::int64_t LoaderBase::first_step() const { return std::max<std::int64_t>(core_->first_step() - skip_, 0); }
bool LoaderBase::iterating() const { return core_->iterating(); }
bool LoaderBase::end_of_dataloader() const { return core_->at_end(); }
bool LoaderBase::begins_step() const { return core_->begins_step(); }
bool LoaderBase::ends_step() const { return core_->ends_step(); }
bool LoaderBase::in_last_step() const { return core_->in_last_step(); }
std::int64_t LoaderBase::remainder() const { return core_->distribution().remainder(); }
std::int64_t LoaderBase::new_samples() const { return core_->distribution().new_rows(core_->step()); }
std::int64_t LoaderBase::new_samples(int rank) const { return core_->distribution().new_rows(core_->step(), rank); }
int LoaderBase::ranks_in_step() const { return core_->distribution().ranks(core_->step()); }
bool LoaderBase::is_even_step() const { return core_->distribution().is_even(core_->step()); }
std::int64_t LoaderBase::position() const { return core_->position(); }
std::chrono::steady_clock::time_point LoaderBase::started() const { return core_->started(); }

StateDict LoaderBase::state() const { return core_->state(); }
void LoaderBase::load(const StateDict& state) { core_->load(state); }

void LoaderBase::bind(const LoaderBinding& binding) { core_->bind(binding); }
bool LoaderBase::even_batches() const { return core_->binding().even_batches; }
void LoaderBase::set_even_batches(bool even) { core_->set_even_batches(even); }
bool LoaderBase::is_bound() const { return core_->is_bound(); }

void LoaderBase::skip_first(std::int64_t batches) {
  if (batches < 0) {
    throw UsageError(
        {.what = text::concat("skip_first_batches was asked to skip ", batches, " batches"), .hint = "use 0 or more"});
  }
  skip_ += batches;
}

LoaderBase::Pass::Pass(std::shared_ptr<data::LoaderCore> core, std::int64_t skip)
    : core_(std::move(core)), number_(core_->begin(skip)) {}

LoaderBase::Pass& LoaderBase::Pass::operator=(Pass&& other) noexcept {
  leave();
  core_ = std::move(other.core_);
  number_ = other.number_;
  return *this;
}

LoaderBase::Pass::~Pass() { leave(); }

std::shared_ptr<void> LoaderBase::Pass::next() { return core_->next(number_); }

void LoaderBase::Pass::leave() noexcept {
  if (core_) core_->leave(number_);
}

}  // namespace hortator
