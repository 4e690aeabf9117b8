#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/charts/chart.hpp"
#include "tools/scale/scale_model.hpp"

namespace hortator::tools {

/// A completed study.
struct Study {
  ScalePlan plan = {};
  std::vector<ScaleSize> sizes = {};
  ScaleModel::Setting setting = {};
  std::string device = "";                ///< of each rank; empty: the CPU
  std::optional<double> peak_flops = {};  ///< operations per second of a rank's device; nothing: unknown
  std::string identity = "";              ///< versions, the same in all runs
};
/// Throws what check_set() throws.
Study study_of(const ScalePlan& plan, const std::vector<ScalePoint>& points, const Network& network);

/// Speed relative to the smallest run (weak: work per time relative to it), and its ratio to the ideal.
double speed_up(const Study& study, double seconds, int ranks);
double efficiency(const Study& study, double seconds, int ranks);
/// Model FLOPs utilisation: operations made, divided by the devices' peak in the same time.
std::optional<double> use_of_peak(const Study& study, const ScaleSize& size);

/// The heading of the table of sizes, and a row for each size.
std::vector<std::vector<std::string>> scale_rows(const Study& study);
/// The model, and MFU where it is known: a paragraph each.
std::vector<std::string> scale_notes(const Study& study);

/// A table for the terminal.
std::string scale_table(const Study& study);
/// Speed-up and efficiency: measured, ideal, and the model, which is dashed beyond the largest size that was measured.
std::vector<Panel> scale_panels(const Study& study);
/// The report in Markdown. `chart` is the file name of its chart, in the same folder.
std::string scale_markdown(const Study& study, const std::string& chart);

}  // namespace hortator::tools
