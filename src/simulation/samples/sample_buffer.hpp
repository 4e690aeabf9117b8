#pragma once

#include <cstdint>
#include <hortator/training/state_dict.hpp>
#include <string>
#include <vector>

#include "simulation/samples/feature_statistics.hpp"
#include "simulation/samples/sample_store.hpp"
#include "simulation/samples/slots.hpp"
#include "simulation/settings/section.hpp"

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

  /// Copies the samples of a batch. Throws UsageError, without any change, if they do not fit the others.
  void put(const TensorBatch& batch);
  /// batch_size random samples, each at most once. Needs is_ready().
  TensorBatch draw();

  struct Statistics {
    FeatureStatistics input = {};
    FeatureStatistics target = {};
  };
  /// Of the first input and the first target, over all samples seen.
  const Statistics& statistics() const { return statistics_; }

  StateDict state() const;
  void load(const StateDict& state);
  /// Takes over samples of other ranks' states; see redistribute().
  void load_redistributed(const std::vector<StateDict>& states, int world, int rank);

 private:
  void copy_into_slots(const TensorBatch& batch, std::int64_t count);
  void take_samples(const StateDict& state, const std::vector<std::int64_t>& rows, std::int64_t slot);

  std::string name_;
  Settings settings_;
  std::uint64_t key_;
  std::int64_t seen_ = 0;
  std::int64_t draws_ = 0;
  SampleStore store_;
  Statistics statistics_;
};

}  // namespace hortator::simulation
