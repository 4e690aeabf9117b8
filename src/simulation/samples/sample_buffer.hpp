#pragma once

#include <cstdint>
#include <functional>
#include <hortator/training/state_dict.hpp>
#include <optional>
#include <string>
#include <vector>

#include "simulation/samples/feature_statistics.hpp"
#include "simulation/samples/priority_keys.hpp"
#include "simulation/samples/sample_store.hpp"
#include "simulation/samples/slots.hpp"
#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// This rank's part of a buffer of samples.
class SampleBuffer {
 public:
  struct Settings {
    SampleChoice choice = SampleChoice::reservoir;
    std::int64_t capacity = 0;  ///< samples on each rank
    std::int64_t batch_size = 0;
    std::int64_t min_samples = 0;  ///< training waits for them
    bool has_statistics = false;
    bool is_node_shared = false;  ///< NodeSamples
    std::int64_t features_dim = 1;
  };
  static Settings read(const Section& section);

  /// `key` decides what the reservoir keeps and what is drawn; it differs between ranks.
  SampleBuffer(std::string name, const Settings& settings, std::uint64_t key);

  const std::string& name() const { return name_; }
  const Settings& settings() const { return settings_; }
  std::int64_t count() const;  ///< samples held
  std::int64_t seen() const { return seen_; }
  bool is_ready() const { return count() >= settings_.min_samples; }

  /// Copies the samples of a batch. Throws UsageError, without any change, if they do not fit the others. Returns
  /// false, and has changed nothing, if a number that is not finite would spoil the statistics.
  bool put(const TensorBatch& batch);
  /// batch_size random samples, each at most once. Needs is_ready().
  TensorBatch draw();

  /// Decides the next draw; a number that has not been returned before.
  std::uint64_t next_draw();
  /// Holds samples in this memory from now on.
  void move_to(const TensorBatch& memory) { store_.move_to(memory, count()); }

  /// Copies of all samples, from the oldest to the newest where that is known.
  TensorBatch all() const;
  /// Forgets all samples, which another buffer has taken over; statistics stay.
  void hand_over();
  std::int64_t moves() const { return moves_; }  ///< how often samples were handed over or taken over
  const SampleStore& store() const { return store_; }

  struct Statistics {
    FeatureStatistics input = {};
    FeatureStatistics target = {};
  };
  /// Samples of another buffer, without batches that would spoil the statistics, and the statistics that this one has
  /// with them.
  struct CheckedSamples {
    std::vector<TensorBatch> batches = {};
    Statistics statistics = {};
  };
  /// Prepares to take over samples that another buffer hands over. Throws UsageError, without any change, if they do
  /// not fit.
  CheckedSamples check(std::vector<TensorBatch> batches);
  /// Takes them over, which does not fail.
  void take_over(const CheckedSamples& samples);

  /// Statistics of the first input and the first target, over all samples seen.
  const Statistics& statistics() const { return statistics_; }

  StateDict state() const;
  void load(const StateDict& state);
  /// The parts that another number of ranks has saved.
  struct SavedParts {
    std::vector<std::int64_t> counts = {};               ///< samples of each
    std::function<StateDict(int)> state = {};            ///< all of one part
    std::function<StateDict(int)> without_samples = {};  ///< its numbers and statistics
  };
  /// Takes over samples of other ranks' parts; see redistribute(). Holds one part at a time in memory.
  void load_redistributed(const SavedParts& parts, int world, int rank);

 private:
  /// The number of samples of a batch that fits.
  std::int64_t checked_count(const TensorBatch& batch) const;
  void require_priorities(const TensorBatch& batch, std::int64_t count) const;
  /// The statistics with those of a batch; nothing if it would spoil them.
  std::optional<Statistics> with(Statistics statistics, const TensorBatch& batch) const;
  std::vector<std::optional<std::int64_t>> place(const TensorBatch& batch, std::int64_t count);
  void copy_into_slots(const TensorBatch& batch, std::int64_t count);
  std::uint64_t slot_key() const;
  /// Takes over statistics and counters. Returns the number of samples that all parts have seen.
  std::int64_t load_numbers(const SavedParts& parts, int rank);
  void take_samples(const StateDict& state, const std::vector<std::int64_t>& rows, std::int64_t slot);

  std::string name_;
  Settings settings_;
  std::uint64_t key_;
  std::int64_t seen_ = 0;
  std::int64_t draws_ = 0;
  std::int64_t moves_ = 0;
  SampleStore store_;
  PriorityKeys priorities_;  ///< empty unless samples are kept by priority
  Statistics statistics_;
};

}  // namespace hortator::simulation
