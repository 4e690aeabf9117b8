#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/plot/chart.hpp"
#include "tools/scale/scale_model.hpp"

namespace hortator::tools {

/// A study that is done.
struct Study {
  ScalePlan plan = {};
  std::vector<ScaleSize> sizes = {};
  ScaleModel::Setting setting = {};
  std::string device = "";                ///< that each rank has; empty: the CPU
  std::optional<double> peak_flops = {};  ///< a second, of what a rank computes on; nothing: not known
};
/// UsageError for a set that check_set() refuses.
Study study_of(const ScalePlan& plan, const std::vector<ScalePoint>& points, const Network& network);

/// How many times faster than the smallest run (weak: how many times its work in its time), and how that compares with
/// the ideal.
double speed_up(const Study& study, double seconds, int ranks);
double efficiency(const Study& study, double seconds, int ranks);
/// The floating-point operations that were made, in proportion to those that the devices could have made meanwhile.
std::optional<double> use_of_peak(const Study& study, const ScaleSize& size);

/// For the terminal, columns aligned.
std::string scale_table(const Study& study);
/// Speed-up and efficiency: what was measured, the ideal, the model up to four times the largest size, and beyond.
std::vector<Panel> scale_panels(const Study& study);
/// The whole in Markdown; the picture lies beside it under the name `picture`.
std::string scale_markdown(const Study& study, const std::string& picture);

}  // namespace hortator::tools
