#pragma once

#include <hortator/accelerator.hpp>
#include <string>
#include <vector>

#include "cli/bench/report.hpp"

namespace hortator::cli::bench {

/// A verb of `hortator bench`: what all ranks do together.
struct Measurement {
  std::string name;
  std::string summary;
  std::vector<Result> (*run)(Accelerator& accelerator, const Plan& plan);  ///< @collective
};

const std::vector<Measurement>& measurements();

std::vector<Result> step(Accelerator& accelerator, const Plan& plan);

}  // namespace hortator::cli::bench
