#include "cli/bench/measurements.hpp"

namespace hortator::cli::bench {

const std::vector<Measurement>& measurements() {
  static const std::vector<Measurement> table = {
      {"collectives", "tensor collectives against a copy of the same bytes, and against MPI", collectives},
      {"step", "a training step of a small model: the prepared loop against the bare LibTorch loop", step},
  };
  return table;
}

}  // namespace hortator::cli::bench
