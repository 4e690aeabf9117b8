#include "simulation/samples/sample_buffer.hpp"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>

#include "core/hash.hpp"
#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

/// The samples in a saved state, as a batch; `rows` selects some.
TensorBatch saved_samples(const StateDict& state, const std::vector<std::int64_t>& rows) {
  TensorBatch batch;
  const auto index = at::tensor(rows, at::kLong);
  const auto read = [&](const char* kind, std::vector<at::Tensor>& into) {
    for (std::size_t i = 0; state.contains(text::concat("samples/", kind, i)); ++i)
      into.push_back(state.get<at::Tensor>(text::concat("samples/", kind, i)).index_select(0, index));
  };
  read("inputs", batch.inputs);
  read("targets", batch.targets);
  read("loss_arguments", batch.loss_arguments);
  return batch;
}

FeatureStatistics saved_statistics(const StateDict& state, const std::string& name) {
  return state.contains(name) ? FeatureStatistics::of_packed(state.get<at::Tensor>(name)) : FeatureStatistics();
}

std::int64_t saved_count(const StateDict& state) {
  return state.contains("samples/inputs0") ? state.get<at::Tensor>("samples/inputs0").size(0) : 0;
}

}  // namespace

SampleBuffer::Settings SampleBuffer::read(const Section& section) {
  Settings settings;
  settings.choice = section.choice("type", {"ring", "reservoir"}, "reservoir") == "ring" ? SampleChoice::ring
                                                                                         : SampleChoice::reservoir;
  settings.capacity = section.integer("capacity", 1);
  settings.batch_size = section.integer("batch_size", 1);
  settings.min_samples = section.integer("min_samples", 1, settings.batch_size);
  settings.has_statistics = section.flag("statistics", false);
  settings.features_dim = section.integer("features_dim", -8, 1);
  if (settings.min_samples < settings.batch_size || settings.min_samples > settings.capacity) {
    throw section.error("min_samples",
                        text::concat("expected a number from batch_size (", settings.batch_size, ") to capacity (",
                                     settings.capacity, "), got ", settings.min_samples));
  }
  section.finish();
  return settings;
}

SampleBuffer::SampleBuffer(std::string name, const Settings& settings, std::uint64_t key)
    : name_(std::move(name)), settings_(settings), key_(key), store_(settings.capacity) {}

std::int64_t SampleBuffer::count() const { return std::min(seen_, settings_.capacity); }

void SampleBuffer::put(const TensorBatch& batch) {
  const auto count = store_.check(batch);
  if (settings_.has_statistics) {
    auto next = statistics_;  // copies share tensors, and merging makes new ones: an error leaves the old numbers
    next.input.add(batch.inputs.front(), settings_.features_dim);
    if (!batch.targets.empty()) next.target.add(batch.targets.front(), settings_.features_dim);
    statistics_ = next;
  }
  copy_into_slots(batch, count);
  seen_ += count;
}

// Neighbouring rows that go to neighbouring slots are copied at once.
void SampleBuffer::copy_into_slots(const TensorBatch& batch, std::int64_t count) {
  const auto slot = [&](std::int64_t row) { return slot_of(settings_.choice, settings_.capacity, key_, seen_ + row); };
  for (std::int64_t row = 0; row < count;) {
    const auto first = slot(row);
    auto end = row + 1;
    while (first && end < count && slot(end) == *first + (end - row)) ++end;
    if (first) store_.copy_rows(batch, row, *first, end - row);
    row = end;
  }
}

TensorBatch SampleBuffer::draw() {
  const auto key = core::mix(core::mix(key_, 0x647261770aU), static_cast<std::uint64_t>(draws_++));
  return store_.rows(draw_samples(settings_.batch_size, count(), key));
}

StateDict SampleBuffer::state() const {
  StateDict state;
  state.put("seen", seen_);
  state.put("draws", draws_);
  if (count() > 0) {
    for (const auto& [name, tensor] : store_.named(count())) state.put("samples/" + name, tensor);
  }
  if (!statistics_.input.empty()) state.put("statistics/input", statistics_.input.packed());
  if (!statistics_.target.empty()) state.put("statistics/target", statistics_.target.packed());
  return state;
}

void SampleBuffer::take_samples(const StateDict& state, const std::vector<std::int64_t>& rows, std::int64_t slot) {
  if (rows.empty()) return;
  const auto batch = saved_samples(state, rows);
  const auto count = store_.check(batch);
  store_.copy_rows(batch, 0, slot, count);
}

void SampleBuffer::load(const StateDict& state) {
  seen_ = state.get<std::int64_t>("seen");
  if (saved_count(state) != count()) return load_redistributed({state}, 1, 0);  // another capacity
  store_.clear();
  draws_ = state.get<std::int64_t>("draws");
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count()));
  std::iota(rows.begin(), rows.end(), 0);
  take_samples(state, rows, 0);
  statistics_ = {saved_statistics(state, "statistics/input"), saved_statistics(state, "statistics/target")};
}

// Rank 0 takes over the statistics of all, since ranks merge theirs.
void SampleBuffer::load_redistributed(const std::vector<StateDict>& states, int world, int rank) {
  store_.clear();
  std::vector<std::int64_t> counts;
  std::int64_t seen = 0;
  Statistics statistics;
  for (const auto& state : states) {
    counts.push_back(saved_count(state));
    seen += state.get<std::int64_t>("seen");
    draws_ = std::max(draws_, state.get<std::int64_t>("draws"));
    if (rank != 0) continue;
    statistics.input.merge(saved_statistics(state, "statistics/input"));
    statistics.target.merge(saved_statistics(state, "statistics/target"));
  }
  std::int64_t slot = 0;
  const auto origins = redistribute(counts, world, rank, settings_.capacity);
  for (std::size_t from = 0; from < states.size(); ++from) {
    std::vector<std::int64_t> rows;
    for (const auto& origin : origins) {
      if (origin.rank == static_cast<int>(from)) rows.push_back(origin.row);
    }
    take_samples(states[from], rows, slot);
    slot += static_cast<std::int64_t>(rows.size());
  }
  const bool is_full = slot == settings_.capacity && settings_.choice == SampleChoice::reservoir;
  seen_ = is_full ? std::max(slot, seen / world) : slot;
  statistics_ = statistics;
}

}  // namespace hortator::simulation
