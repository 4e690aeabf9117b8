#pragma once

#include <cstdint>
#include <optional>

#include "accelerator/prepared/checkpoint_part.hpp"
#include "mpi/communicator.hpp"
#include "simulation/calls/handles.hpp"
#include "simulation/node_samples.hpp"
#include "simulation/samples/sample_buffer.hpp"
#include "simulation/training/trained_model.hpp"

namespace hortator::simulation {

/// A buffer of samples over all ranks of a run: each rank has a part.
class RunBuffer : public Handled<hortator_buffer, RunBuffer> {
 public:
  RunBuffer(const mpi::Communicator& comm, SampleBuffer samples);  ///< @collective

  SampleBuffer& samples() { return samples_; }
  const SampleBuffer& samples() const { return samples_; }
  /// Copies samples into this rank's part. Returns false, and warns once, if they would spoil its statistics. Local.
  bool put(const TensorBatch& batch);
  /// Training steps on random samples of all ranks. Returns the last one; is_done is false if some rank has too few
  /// samples, or if all steps were left out. Throws UsageError on all ranks if one has no model, or one of another run.
  /// @collective
  TrainedModel::Step train(TrainedModel* model, std::int64_t steps, bool wants_loss);
  /// Its part of a checkpoint. The buffer must outlive it.
  accelerator::CheckpointPart part();

 private:
  bool is_ready();  ///< @collective where ranks of a node share samples
  TensorBatch draw();
  void require_own(const TrainedModel* model) const;
  void standardize(TrainedModel& model) const;  ///< @collective
  void load(const checkpoint::Reader& reader);
  std::int64_t saved_count(const checkpoint::Reader& reader, int rank) const;
  std::string path() const { return "buffers/" + samples_.name(); }

  const mpi::Communicator& comm_;
  SampleBuffer samples_;
  bool has_warned_ = false;             ///< of samples that were left out
  std::optional<NodeSamples> of_node_;  ///< where the ranks of a node draw from the samples of all of them
};

}  // namespace hortator::simulation
