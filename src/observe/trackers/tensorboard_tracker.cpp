#include "observe/trackers/tensorboard_tracker.hpp"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "core/time.hpp"
#include "core/whole_file.hpp"
#include "formats/image/image.hpp"
#include "observe/trackers/event.hpp"
#include "observe/trackers/event_cut.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::observe {
namespace {

namespace fs = std::filesystem;

// The image as bytes, height x width x channels.
at::Tensor pixels_of(const at::Tensor& image) {
  auto bytes = image.detach().to(at::kCPU);
  if (bytes.is_floating_point()) bytes = (bytes.to(at::kFloat).clamp(0, 1) * 255).round();
  return bytes.to(at::kByte).permute({1, 2, 0}).contiguous();
}

EncodedImage encoded(const at::Tensor& image) {
  const auto pixels = pixels_of(image);
  const int channels = static_cast<int>(pixels.size(2));
  const std::span<const std::uint8_t> bytes(pixels.const_data_ptr<std::uint8_t>(), pixels.nbytes());
  return {.width = pixels.size(1),
          .height = pixels.size(0),
          .channels = channels,
          .png = formats::encode_png(bytes, static_cast<std::size_t>(pixels.size(1)),
                                     static_cast<std::size_t>(pixels.size(0)), channels)};
}

void check_images(const at::Tensor& images) {
  const auto channels = images.defined() && images.dim() >= 3 ? images.size(-3) : 0;
  if (images.defined() && (images.dim() == 3 || images.dim() == 4) && (channels == 1 || channels == 3) &&
      images.numel() > 0 && (images.is_floating_point() || images.scalar_type() == at::kByte)) {
    return;
  }
  throw UsageError({.what = images.defined() ? text::concat("log_images: got a tensor of shape ", images.sizes(),
                                                            " and type ", images.scalar_type())
                                             : std::string("log_images: got an undefined tensor"),
                    .why = "images are bytes, or numbers from 0 to 1, with 1 or 3 channels",
                    .hint = "pass 3 x height x width, or n x 3 x height x width"});
}

}  // namespace

std::string next_event_file(const fs::path& folder, std::int64_t now, const std::string& host) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with(event_file_prefix)) continue;
    std::int64_t seconds = 0;
    std::from_chars(name.data() + event_file_prefix.size(), name.data() + name.size(), seconds);
    now = std::max(now, seconds + 1);
  }
  // Ten digits, so that names sort in the order of the numbers.
  auto digits = std::to_string(now);
  digits.insert(0, digits.size() < 10 ? 10 - digits.size() : 0, '0');
  return text::concat(event_file_prefix, digits, '.', host, '.', getpid());
}

void TensorBoardTracker::open() {
  const auto folder = start_.folder / start_.name;
  const auto host = runtime::current_run().host;
  if (start_.last_step) {
    cut_events(folder, *start_.last_step);
  } else {
    put_events_aside(folder);
  }
  file_ = std::make_unique<LogFile>(folder / next_event_file(folder, static_cast<std::int64_t>(core::unix_time()),
                                                             host.empty() ? "localhost" : host));
  file_->append(framed(version_event(core::unix_time())));
  file_->append(framed(restart_event(core::unix_time(), start_.last_step ? *start_.last_step + 1 : 0)));
  if (!settings_.empty()) file_->append(framed(std::exchange(settings_, "")));
}

void TensorBoardTracker::append(const std::string& event) {
  if (!file_) open();
  file_->append(framed(event));
}

void TensorBoardTracker::store_config(const TrackerConfig& config) {
  if (config.empty()) return;
  settings_ = settings_event(core::unix_time(), start_.name, config);
  if (file_) file_->append(framed(std::exchange(settings_, "")));
}

void TensorBoardTracker::log(const TrackerRecord& record) { append(scalars_event(record)); }

void TensorBoardTracker::finish() {
  if (!settings_.empty()) open();
  FileTracker::finish();
}

void TensorBoardTracker::log_text(const std::string& name, const std::string& text, std::int64_t step) {
  append(text_event(core::unix_time(), step, name, text));
}

void TensorBoardTracker::log_histogram(const std::string& name, const at::Tensor& numbers, std::int64_t step) {
  if (!numbers.defined()) {
    throw UsageError({.what = "log_histogram: got an undefined tensor", .hint = "pass the numbers to count"});
  }
  append(histogram_event(core::unix_time(), step, name, histogram_of(numbers)));
}

void TensorBoardTracker::log_images(const std::string& name, const at::Tensor& images, std::int64_t step) {
  check_images(images);
  std::vector<EncodedImage> encoded_images;
  if (images.dim() == 3) {
    encoded_images.push_back(encoded(images));
  } else {
    for (const auto& image : images.unbind(0)) encoded_images.push_back(encoded(image));
  }
  append(images_event(core::unix_time(), step, name, encoded_images));
}

void TensorBoardTracker::log_audio(const std::string& name, const at::Tensor& samples, int sample_rate,
                                   std::int64_t step) {
  append(audio_event(core::unix_time(), step, name, encoded_audio(samples, sample_rate)));
}

void TensorBoardTracker::log_table(const std::string& name, const TrackerTable& table, std::int64_t step) {
  log_text(name, table_text(table), step);
}

void TensorBoardTracker::log_figure(const std::string& name, const fs::path& png, std::int64_t step) {
  auto content = core::read_whole(png).value_or("");
  const auto size = png_size(content, png.string());
  append(images_event(core::unix_time(), step, name,
                      {{.width = size.width, .height = size.height, .channels = 3, .png = std::move(content)}}));
}

}  // namespace hortator::observe
