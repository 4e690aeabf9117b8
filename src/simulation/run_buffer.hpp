#pragma once

#include <cstdint>
#include <optional>

#include "accelerator/training/prepared.hpp"
#include "mpi/communicator.hpp"
#include "simulation/handles.hpp"
#include "simulation/samples/sample_buffer.hpp"
#include "simulation/trained_model.hpp"

namespace hortator::simulation {

/// A buffer of samples over all ranks of a run: each rank has a part.
class RunBuffer : public hortator_buffer {
 public:
  RunBuffer(const mpi::Communicator& comm, SampleBuffer samples) : comm_(comm), samples_(std::move(samples)) {}

  SampleBuffer& samples() { return samples_; }
  /// Training steps on random samples of all ranks. Returns the loss of the last step; nothing if some rank has too few
  /// samples. @collective
  std::optional<double> train(TrainedModel& model, std::int64_t steps, bool wants_loss);
  /// Its part of a checkpoint. The buffer must outlive it.
  accelerator::CheckpointPart part();

 private:
  void standardize(TrainedModel& model) const;  ///< @collective
  void load(const checkpoint::Reader& reader);
  std::string path() const { return "buffers/" + samples_.name(); }

  const mpi::Communicator& comm_;
  SampleBuffer samples_;
};

}  // namespace hortator::simulation
