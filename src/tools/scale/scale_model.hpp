#pragma once

#include <optional>
#include <vector>

#include "tools/scale/scale_plan.hpp"

/// How long a run takes on other numbers of ranks: pure.
namespace hortator::tools {

/// An all-reduce over so many ranks: latency + bytes / bandwidth.
struct Network {
  int ranks = 2;
  double latency = 0;           ///< seconds
  double seconds_per_byte = 0;  ///< of the buffer
};

struct Timing {
  double bytes = 0;
  double seconds = 0;
};
/// The line through the timings that errs least in proportion. Error for less than two sizes.
Network network_of(int ranks, const std::vector<Timing>& timings);

/// What the runs of one size have shown.
struct ScaleSize {
  int ranks = 1;
  int nodes = 1;
  double seconds = 0;  ///< the median of the repeats; strong: of all updates, weak: of one
  double least = 0;
  double greatest = 0;
  double updates = 1;  ///< that these seconds are of
  double core_hours = 0;
  double gpu_hours = 0;
  double flops = 0;  ///< of a rank in an update; 0: not known
};
std::vector<ScaleSize> sizes_of(const ScalePlan& plan, const std::vector<ScalePoint>& points);

/// Compute as the smallest run had it, communication as the network has it, and how much of it compute hides: fitted.
class ScaleModel {
 public:
  /// What the model knows of the study and its machine.
  struct Setting {
    Growth growth = Growth::strong;
    Network network = {};
    double gradient_bytes = 0;
    int cores_per_node = 1;
    double cores_per_rank = 1;               ///< that a rank keeps busy
    std::optional<int> ranks_per_node = {};  ///< nothing: all ranks are on one
  };

  ScaleModel(const Setting& setting, const std::vector<ScaleSize>& sizes);

  double seconds(int ranks) const;
  double overlap() const { return overlap_; }  ///< 0: none is hidden, 1: all

 private:
  double compute_factor(int ranks) const;
  double communication(int ranks) const;
  double updates(int ranks) const;

  Setting setting_;
  ScaleSize smallest_;
  bool updates_shrink_ = false;
  double overlap_ = 0;
};

/// What the model says of a size that it was not shown; nothing for the smallest, and where no two others are left.
std::optional<double> left_out(const ScaleModel::Setting& setting, const std::vector<ScaleSize>& sizes,
                               std::size_t one);

}  // namespace hortator::tools
