#include "parallel/data_parallel/common_pass.hpp"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <optional>
#include <utility>

#include "core/activity/note.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"
#include "mpi/collectives.hpp"

namespace hortator::parallel {

CommonPass::CommonPass(std::unique_ptr<comm::Communicator> communicator, const mpi::Communicator& host)
    : communicator_(std::move(communicator)), host_(host), bounds_(at::zeros({2}, at::kLong)) {}

CommonPass::Model CommonPass::add_model(std::string name) {
  names_.push_back(std::move(name));
  is_open_.push_back(false);
  faults_.emplace_back();
  sends_.push_back(false);
  return {this, names_.size() - 1};
}

void CommonPass::forget_all() {
  names_.clear();
  is_open_.clear();
  faults_.clear();
  sends_.clear();
  sent_ = settled_ = 0;
}

void CommonPass::Model::expect_gradients() const {
  if (all_ != nullptr) all_->sends_[number_] = true;
}

bool CommonPass::Model::comes_first(bool finishes_all) const {
  if (all_ == nullptr) return true;
  const auto& sends = all_->sends_;
  const auto before = std::count(sends.begin(), sends.begin() + static_cast<std::ptrdiff_t>(number_), true);
  return before == 0 && (finishes_all || std::count(sends.begin(), sends.end(), true) == 1);
}

void CommonPass::Model::open(std::function<std::string()> fault) const {
  if (all_ == nullptr) return;
  all_->is_open_[number_] = true;
  all_->faults_[number_] = std::move(fault);
}

void CommonPass::Model::note_sent(std::size_t part) const {
  if (all_ != nullptr) all_->sent_ = core::mix(core::mix(all_->sent_, number_), part);
}

// Parts of models that are still open may have been sent by some ranks and not yet by others.
void CommonPass::Model::close() const {
  if (all_ == nullptr) return;
  all_->is_open_[number_] = false;
  if (std::none_of(all_->is_open_.begin(), all_->is_open_.end(), [](bool open) { return open; }))
    all_->settled_ = all_->sent_;
}

void CommonPass::Model::agree() const {
  if (all_ != nullptr) all_->compare(all_->names_[number_]);
}

void CommonPass::agree() const {
  std::vector<std::string> reached;
  for (std::size_t model = 0; model < names_.size(); ++model) {
    if (is_open_[model]) reached.push_back(names_[model]);
  }
  compare(reached.empty() ? "none" : text::join(reached));
}

std::string CommonPass::fault() const {
  for (std::size_t model = 0; model < names_.size(); ++model) {
    if (!is_open_[model]) continue;
    if (auto found = faults_[model](); !found.empty()) return found;
  }
  return "";
}

void CommonPass::compare(const std::string& reached) const {
  const auto mine = static_cast<std::int64_t>(core::mix(core::hash(reached), settled_));
  auto* bounds = bounds_.mutable_data_ptr<std::int64_t>();
  bounds[0] = mine;
  bounds[1] = ~mine;  // the minimum of the complement gives the maximum
  {
    std::optional<activity::Note> note;
    if (auto found = fault(); !found.empty()) note.emplace(std::move(found));
    const core::Stopwatch waiting(seconds_);
    communicator_->all_reduce(bounds_, comm::ReduceOp::min).wait();
  }
  if (bounds[0] == ~bounds[1]) return;
  const auto all = mpi::all_gather(host_, std::string_view(reached));
  const auto other = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one != all[0]; });
  if (other == all.end()) {
    throw UsageError({.what = "Ranks have sent gradients of several models in different orders",
                      .why = "in the previous pass, gradients of one model may have been averaged with another's",
                      .hint = "use the models in the same order on all ranks, or call backward separately for each"});
  }
  const auto rank = static_cast<int>(other - all.begin());
  throw UsageError(
      {.what = text::concat("Backward reached ", all[0], " on rank 0, and ", *other, " on rank ", rank),
       .why = "gradients are averaged over all ranks, so each pass must reach the same models on all of them",
       .hint = "use the model in every rank's loss, if necessary with weight zero, or run the pass under "
               "no_sync"})
      .on_rank(rank);
}

}  // namespace hortator::parallel
