#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/tracker.hpp>
#include <string>

/// Tables, plots and sound in the forms in which trackers keep them.
namespace hortator::observe {

struct EncodedAudio {
  int sample_rate = 0;
  std::int64_t channels = 0;
  std::int64_t frames = 0;
  std::string wav = "";
};
/// 16-bit samples of [frames] or [frames, channels] numbers from -1 to 1; larger ones are clipped. Throws UsageError
/// for other tensors.
EncodedAudio encoded_audio(const at::Tensor& samples, int sample_rate);

struct ImageSize {
  std::int64_t width = 0;
  std::int64_t height = 0;
};
/// The size of the image in the contents of a PNG file. Throws UsageError, naming `file`, if they are not a PNG.
ImageSize png_size(const std::string& content, const std::string& file);

/// Throws UsageError unless each row has a value for each column.
void check_table(const TrackerTable& table);
/// In Markdown.
std::string table_text(const TrackerTable& table);
/// As pandas writes it with orient="split", which MLflow reads.
std::string table_json(const TrackerTable& table);

}  // namespace hortator::observe
