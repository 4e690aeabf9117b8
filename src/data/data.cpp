#include <hortator/data.hpp>

#include "data/loader_core.hpp"

namespace hortator {

LoaderBase::LoaderBase(std::unique_ptr<data::BatchSource> source, const LoaderOptions& options)
    : core_(std::make_shared<data::LoaderCore>(std::move(source), options)) {}

std::int64_t LoaderBase::size() const { return core_->shard().size(); }
std::int64_t LoaderBase::dataset_size() const { return core_->dataset_size(); }
std::int64_t LoaderBase::batch_size() const { return core_->options().batch_size; }
std::int64_t LoaderBase::total_batch_size() const { return core_->shard().total_batch_size(); }

std::int64_t LoaderBase::epoch() const { return core_->epoch(); }
void LoaderBase::set_epoch(std::int64_t epoch) { core_->set_epoch(epoch); }

std::int64_t LoaderBase::first_step() const { return core_->first_step(); }
bool LoaderBase::iterating() const { return core_->iterating(); }
bool LoaderBase::end_of_dataloader() const { return core_->at_end(); }
bool LoaderBase::begins_step() const { return core_->begins_step(); }
bool LoaderBase::ends_step() const { return core_->ends_step(); }
bool LoaderBase::in_last_step() const { return core_->in_last_step(); }
std::int64_t LoaderBase::remainder() const { return core_->remainder(); }
std::int64_t LoaderBase::new_samples() const { return core_->new_samples(); }
std::int64_t LoaderBase::position() const { return core_->position(); }
std::chrono::steady_clock::time_point LoaderBase::started() const { return core_->started(); }

StateDict LoaderBase::state() const { return core_->state(); }
void LoaderBase::load(const StateDict& state) { core_->load(state); }

void LoaderBase::bind(const LoaderBinding& binding) { core_->bind(binding); }
bool LoaderBase::even_batches() const { return core_->even_batches(); }
void LoaderBase::set_even_batches(bool even) { core_->set_even_batches(even); }
bool LoaderBase::is_bound() const { return core_->is_bound(); }

LoaderBase::Pass::Pass(std::shared_ptr<data::LoaderCore> core) : core_(std::move(core)), number_(core_->begin()) {}

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
