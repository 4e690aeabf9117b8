#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/tracker.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "observe/trackers/media.hpp"

namespace hortator::observe {

/// Counts of numbers between limits: counts[i] numbers are above limits[i - 1] and at most limits[i].
struct Histogram {
  double min = 0;
  double max = 0;
  std::int64_t count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  std::vector<double> limits = {};
  std::vector<double> counts = {};
};

/// 30 bins of equal width from the smallest to the largest number; one bin if all are equal. Numbers that are not
/// finite are skipped.
Histogram histogram_of(const at::Tensor& numbers);

/// How the names of event files begin.
constexpr std::string_view event_file_prefix = "events.out.tfevents.";

/// A record of an event file: length, its checksum, the event, its checksum.
std::string framed(const std::string& event);

/// The first event of each file.
std::string version_event(double time);
/// A resumed run: readers drop earlier events of steps from `step` on.
std::string restart_event(double time, std::int64_t step);
std::string scalars_event(const TrackerRecord& record);
std::string text_event(double time, std::int64_t step, const std::string& name, const std::string& text);
std::string histogram_event(double time, std::int64_t step, const std::string& name, const Histogram& numbers);

struct EncodedImage {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 3;
  std::string png = "";
};
/// Several images get the tags NAME/0, NAME/1, ...
std::string images_event(double time, std::int64_t step, const std::string& name,
                         const std::vector<EncodedImage>& images);

std::string audio_event(double time, std::int64_t step, const std::string& name, const EncodedAudio& audio);

/// The table of hyper-parameters: their names and types, and the values of this run.
std::string settings_event(double time, const std::string& run, const TrackerConfig& config);

}  // namespace hortator::observe
