#pragma once

#include <cstdint>
#include <hortator/parallel/mesh.hpp>

#include "options.hpp"

namespace example {

/// The options --tensor, --context and --pipeline: ranks that compute each batch together. 1 leaves it to `hortator
/// launch`.
struct Axes {
  std::int64_t tensor = 1, context = 1, pipeline = 1;

  /// Only --tensor, for models whose inputs are no sequences.
  static Axes parse_tensor(Options& options) {
    return {.tensor = options.number("tensor", 1, "ranks among which the model's layers are divided")};
  }
  static Axes parse(Options& options) {
    auto axes = parse_tensor(options);
    axes.context = options.number("context", 1, "ranks among which sequences are divided");
    return axes;
  }
  /// All three, for programs that train by pipeline_step().
  static Axes parse_with_pipeline(Options& options) {
    auto axes = parse(options);
    axes.pipeline = options.number("pipeline", 1, "ranks that have consecutive layers of the model");
    return axes;
  }
  hortator::ParallelConfig config() const {
    return {.tensor = static_cast<int>(tensor),
            .context = static_cast<int>(context),
            .pipeline = static_cast<int>(pipeline)};
  }
};

}  // namespace example
