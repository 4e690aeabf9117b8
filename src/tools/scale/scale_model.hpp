#pragma once

#include <optional>
#include <vector>

#include "tools/scale/scale_plan.hpp"

/// Predicts the time of a run on other numbers of ranks. No input or output.
namespace hortator::tools {

/// Cost of an all-reduce over `ranks` ranks: latency + bytes / bandwidth.
struct Network {
  int ranks = 2;
  double latency = 0;           ///< seconds
  double seconds_per_byte = 0;  ///< of the buffer
};

struct Timing {
  double bytes = 0;
  double seconds = 0;
};
/// Fits latency and bandwidth to the timings, minimising the relative error. Throws Error for fewer than two sizes.
Network network_of(int ranks, const std::vector<Timing>& timings);

/// The measurements of the runs of one size.
struct ScaleSize {
  int ranks = 1;
  int nodes = 1;
  double seconds = 0;  ///< the median of the repeats; strong: of all updates, weak: of one
  double min_seconds = 0;
  double max_seconds = 0;
  double updates = 1;  ///< the number of updates that `seconds` covers
  double core_hours = 0;
  double gpu_hours = 0;
  double joules = 0;  ///< to solution: of the updates in `seconds`, over all nodes; the median; 0: not measured
  double flops = 0;   ///< of a rank in an update; 0: unknown
};
std::vector<ScaleSize> sizes_of(const ScalePlan& plan, const std::vector<ScalePoint>& points);

/// Models compute time by the smallest run and communication by the network; the fraction of communication that
/// overlaps with compute is fitted.
class ScaleModel {
 public:
  /// The study and its machine.
  struct Setting {
    Growth growth = Growth::strong;
    Network network = {};
    double gradient_bytes = 0;
    int cores_per_node = 1;
    double cores_per_rank = 1;               ///< cores that a rank keeps busy
    std::optional<int> ranks_per_node = {};  ///< nothing: all ranks are on one node
  };

  ScaleModel(const Setting& setting, const std::vector<ScaleSize>& sizes);

  double seconds(int ranks) const;
  double overlap() const { return overlap_; }  ///< fraction of communication hidden by compute, 0 to 1

 private:
  double compute_factor(int ranks) const;
  double communication(int ranks) const;
  double updates(int ranks) const;

  Setting setting_;
  ScaleSize smallest_;
  bool updates_shrink_ = false;
  double overlap_ = 0;
};

/// The prediction for sizes[index] from a model fitted without it; nothing for the smallest size, and if fewer than two
/// others remain.
std::optional<double> left_out(const ScaleModel::Setting& setting, const std::vector<ScaleSize>& sizes,
                               std::size_t index);

}  // namespace hortator::tools
