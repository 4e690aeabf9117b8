#pragma once

#include <cstdint>
#include <optional>

#include "accelerator/training/prepared.hpp"
#include "mpi/communicator.hpp"
#include "simulation/handles.hpp"
#include "simulation/node_samples.hpp"
#include "simulation/samples/sample_buffer.hpp"
#include "simulation/trained_model.hpp"

namespace hortator::simulation {

/// A buffer of samples over all ranks of a run: each rank has a part.
class RunBuffer : public hortator_buffer {
 public:
  RunBuffer(const mpi::Communicator& comm, SampleBuffer samples);  ///< @collective

  SampleBuffer& samples() { return samples_; }
  const SampleBuffer& samples() const { return samples_; }
  /// Training steps on random samples of all ranks. Returns the loss of the last step; nothing if some rank has too few
  /// samples. Throws UsageError on all ranks if one has no model, or one of another run. @collective
  std::optional<double> train(TrainedModel* model, std::int64_t steps, bool wants_loss);
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
  std::optional<NodeSamples> of_node_;  ///< where the ranks of a node draw from the samples of all of them
};

}  // namespace hortator::simulation
