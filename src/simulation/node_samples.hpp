#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/communicator.hpp"
#include "mpi/shared_memory.hpp"
#include "simulation/samples/sample_buffer.hpp"

namespace hortator::simulation {

/// The parts of a buffer that the ranks of a node hold, in memory that they share: each rank writes its own part, and
/// draws from all of them. A rank may write only when the others do not draw: between two trainings.
class NodeSamples {
 public:
  explicit NodeSamples(const mpi::Communicator& comm);  ///< @collective

  /// Must be called before samples are drawn. Moves `mine` into the shared memory as soon as some rank has a sample.
  /// Throws UsageError on all ranks if their samples differ in shape. @collective
  void update(SampleBuffer& mine);
  /// Samples of all ranks of the node, at the last update.
  std::int64_t count() const;
  /// batch_size random samples of the node, each at most once. Needs count() to be as large.
  TensorBatch draw(SampleBuffer& mine) const;

 private:
  void allocate(SampleBuffer& mine);
  /// The rows of each part in the next batch.
  std::vector<at::Tensor> rows_to_draw(SampleBuffer& mine) const;

  const mpi::Communicator& comm_;
  mpi::Communicator node_;
  std::vector<std::int64_t> counts_ = {};
  std::unique_ptr<mpi::SharedMemory> memory_;
  std::vector<TensorBatch> parts_ = {};  ///< of each rank: views of the memory
};

}  // namespace hortator::simulation
