#include "simulation/samples/sample_buffer.hpp"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_and.h>
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

std::int64_t saved_moves(const StateDict& state) {
  return state.contains("moves") ? state.get<std::int64_t>("moves") : 0;
}

/// The keys of saved samples. A buffer that was not kept by priority has none: its samples leave first.
std::vector<double> saved_keys(const StateDict& state, const std::vector<std::int64_t>& rows) {
  std::vector<double> keys(rows.size(), priority_key(0, 0, 0));
  if (!state.contains("keys")) return keys;
  const auto saved = state.get<at::Tensor>("keys").contiguous();
  for (std::size_t i = 0; i < rows.size(); ++i) keys[i] = saved.const_data_ptr<double>()[rows[i]];
  return keys;
}

}  // namespace

SampleBuffer::Settings SampleBuffer::read(const Section& section) {
  Settings settings;
  const auto type = section.choice("type", {"ring", "reservoir", "priority"}, "reservoir");
  settings.choice = type == "ring"       ? SampleChoice::ring
                    : type == "priority" ? SampleChoice::priority
                                         : SampleChoice::reservoir;
  settings.capacity = section.integer("capacity", 1);
  settings.batch_size = section.integer("batch_size", 1);
  settings.min_samples = section.integer("min_samples", 1, settings.batch_size);
  settings.has_statistics = section.flag("statistics", false);
  settings.is_node_shared = section.flag("node_shared", false);
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
    : name_(std::move(name)),
      settings_(settings),
      key_(key),
      store_(settings.capacity),
      priorities_(settings.capacity) {}

std::int64_t SampleBuffer::count() const { return std::min(seen_, settings_.capacity); }

bool SampleBuffer::put(const TensorBatch& batch) {
  const auto count = checked_count(batch);
  const auto next = with(statistics_, batch);
  if (!next) return false;
  if (count > 0) store_.reserve(batch);
  copy_into_slots(batch, count);
  seen_ += count;
  statistics_ = *next;
  return true;
}

std::int64_t SampleBuffer::checked_count(const TensorBatch& batch) const {
  const auto count = store_.check(batch);
  require_priorities(batch, count);
  return count;
}

// Copies share tensors, and merging makes new ones: an error leaves the old numbers.
std::optional<SampleBuffer::Statistics> SampleBuffer::with(Statistics statistics, const TensorBatch& batch) const {
  if (!settings_.has_statistics) return statistics;
  statistics.input.add(batch.inputs.front(), settings_.features_dim);
  if (!batch.targets.empty()) statistics.target.add(batch.targets.front(), settings_.features_dim);
  if (!statistics.input.is_finite() || !statistics.target.is_finite()) return {};
  return statistics;
}

void SampleBuffer::require_priorities(const TensorBatch& batch, std::int64_t count) const {
  if (settings_.choice != SampleChoice::priority) return;
  const auto& given = batch.priorities;
  const bool fits = given.defined() && given.numel() == count &&
                    (given.is_floating_point() || at::isIntegralType(given.scalar_type(), /*includeBool=*/false));
  if (fits && (count == 0 || given.to(at::kDouble).isfinite().logical_and(given >= 0).all().item<bool>())) return;
  throw UsageError(
      {.what = text::concat("The buffer ", text::quote(name_), " keeps samples by priority; the batch has ",
                            given.defined() ? "other priorities than one number from 0 for each of " : "none for ",
                            text::count(count, "sample")),
       .hint = "bind one number from 0 for each sample as HORTATOR_PRIORITY"});
}

// A buffer whose samples were handed over does not repeat its choices.
std::uint64_t SampleBuffer::slot_key() const {
  return moves_ == 0 ? key_ : core::mix(key_, static_cast<std::uint64_t>(moves_));
}

std::vector<std::optional<std::int64_t>> SampleBuffer::place(const TensorBatch& batch, std::int64_t count) {
  std::vector<std::optional<std::int64_t>> slots(static_cast<std::size_t>(count));
  if (settings_.choice != SampleChoice::priority) {
    for (std::int64_t row = 0; row < count; ++row)
      slots[static_cast<std::size_t>(row)] = slot_of(settings_.choice, settings_.capacity, slot_key(), seen_ + row);
    return slots;
  }
  const auto priorities = batch.priorities.to(at::kCPU, at::kDouble).reshape({-1}).contiguous();
  for (std::int64_t row = 0; row < count; ++row) {
    const double priority = priorities.const_data_ptr<double>()[row];
    slots[static_cast<std::size_t>(row)] = priorities_.place(priority_key(priority, slot_key(), seen_ + row));
  }
  return slots;
}

// Neighbouring rows that go to neighbouring slots are copied at once.
void SampleBuffer::copy_into_slots(const TensorBatch& batch, std::int64_t count) {
  const auto slots = place(batch, count);
  const auto slot = [&](std::int64_t row) { return slots[static_cast<std::size_t>(row)]; };
  for (std::int64_t row = 0; row < count;) {
    const auto first = slot(row);
    auto end = row + 1;
    while (first && end < count && slot(end) == *first + (end - row)) ++end;
    if (first) store_.copy_rows(batch, row, *first, end - row);
    row = end;
  }
}

TensorBatch SampleBuffer::all() const {
  std::vector<std::int64_t> slots(static_cast<std::size_t>(count()));
  const auto oldest =
      settings_.choice == SampleChoice::ring && seen_ > settings_.capacity ? seen_ % settings_.capacity : 0;
  for (std::int64_t i = 0; i < count(); ++i) slots[static_cast<std::size_t>(i)] = (oldest + i) % settings_.capacity;
  return store_.rows(slots);
}

void SampleBuffer::hand_over() {
  seen_ = 0;
  priorities_.assign({});
  ++moves_;
}

SampleBuffer::CheckedSamples SampleBuffer::check(std::vector<TensorBatch> batches) {
  CheckedSamples samples{.statistics = statistics_};
  for (auto& batch : batches) {
    checked_count(batch);
    const auto next = with(samples.statistics, batch);
    if (!next) continue;
    samples.statistics = *next;
    samples.batches.push_back(std::move(batch));
  }
  if (!samples.batches.empty()) store_.reserve(samples.batches.front());
  return samples;
}

void SampleBuffer::take_over(const CheckedSamples& samples) {
  for (const auto& batch : samples.batches) {
    const auto count = batch.inputs.front().size(0);
    copy_into_slots(batch, count);
    seen_ += count;
  }
  statistics_ = samples.statistics;
  ++moves_;
}

std::uint64_t SampleBuffer::next_draw() {
  return core::mix(core::mix(key_, 0x647261770aU), static_cast<std::uint64_t>(draws_++));
}

TensorBatch SampleBuffer::draw() { return store_.rows(draw_samples(settings_.batch_size, count(), next_draw())); }

StateDict SampleBuffer::state() const {
  StateDict state;
  state.put("seen", seen_);
  state.put("draws", draws_);
  state.put("moves", moves_);
  if (const auto keys = priorities_.of_slots(); !keys.empty()) state.put("keys", at::tensor(keys, at::kDouble));
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
  if (saved_count(state) != count()) {  // another capacity
    const auto same = [&](int) { return state; };
    return load_redistributed({{saved_count(state)}, same, same}, 1, 0);
  }
  store_.clear();
  draws_ = state.get<std::int64_t>("draws");
  moves_ = saved_moves(state);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count()));
  std::iota(rows.begin(), rows.end(), 0);
  take_samples(state, rows, 0);
  if (settings_.choice == SampleChoice::priority) priorities_.assign(saved_keys(state, rows));
  statistics_ = {saved_statistics(state, "statistics/input"), saved_statistics(state, "statistics/target")};
}

// Rank 0 takes over the statistics of all, since ranks merge theirs.
std::int64_t SampleBuffer::load_numbers(const SavedParts& parts, int rank) {
  std::int64_t seen = 0;
  Statistics statistics;
  for (std::size_t part = 0; part < parts.counts.size(); ++part) {
    const auto state = parts.without_samples(static_cast<int>(part));
    seen += state.get<std::int64_t>("seen");
    draws_ = std::max(draws_, state.get<std::int64_t>("draws"));
    moves_ = std::max(moves_, saved_moves(state));
    if (rank != 0) continue;
    statistics.input.merge(saved_statistics(state, "statistics/input"));
    statistics.target.merge(saved_statistics(state, "statistics/target"));
  }
  statistics_ = statistics;
  return seen;
}

void SampleBuffer::load_redistributed(const SavedParts& parts, int world, int rank) {
  store_.clear();
  const auto seen = load_numbers(parts, rank);
  std::int64_t slot = 0;
  std::vector<double> keys;
  const bool is_ring = settings_.choice == SampleChoice::ring;
  const auto origins = redistribute(parts.counts, world, rank, settings_.capacity, /*newest=*/is_ring);
  for (std::size_t from = 0; from < parts.counts.size(); ++from) {
    std::vector<std::int64_t> rows;
    for (const auto& origin : origins) {
      if (origin.rank == static_cast<int>(from)) rows.push_back(origin.row);
    }
    if (rows.empty()) continue;
    const auto state = parts.state(static_cast<int>(from));
    if (is_ring) {
      const auto seen_there = state.get<std::int64_t>("seen");
      for (auto& row : rows) row = slot_of_age(row, seen_there, parts.counts[from]);
    }
    take_samples(state, rows, slot);
    const auto taken = saved_keys(state, rows);
    keys.insert(keys.end(), taken.begin(), taken.end());
    slot += static_cast<std::int64_t>(rows.size());
  }
  if (settings_.choice == SampleChoice::priority) priorities_.assign(keys);
  const bool is_full = slot == settings_.capacity && !is_ring;
  seen_ = is_full ? std::max(slot, seen / world) : slot;
}

}  // namespace hortator::simulation
