#include "observe/trackers/event.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/checksum/crc.hpp"
#include "core/text/text.hpp"
#include "observe/trackers/wire.hpp"

namespace hortator::observe {
namespace {

// Numbers of the fields, one namespace per message.
namespace event {
constexpr int wall_time = 1;
constexpr int step = 2;
constexpr int file_version = 3;
constexpr int summary = 5;
constexpr int session_log = 7;
}  // namespace event
namespace value {
constexpr int tag = 1;
constexpr int simple_value = 2;
constexpr int image = 4;
constexpr int histogram = 5;
constexpr int audio = 6;
constexpr int tensor = 8;
constexpr int metadata = 9;
}  // namespace value
namespace plugin_data {
constexpr int in_metadata = 1;  // its field of SummaryMetadata
constexpr int name = 1;
constexpr int content = 2;
}  // namespace plugin_data
namespace tensor {
constexpr int type = 1;
constexpr int shape = 2;
constexpr int string_value = 8;
constexpr int string_type = 7;  // DT_STRING
}  // namespace tensor
namespace histogram {
constexpr int min = 1;
constexpr int max = 2;
constexpr int count = 3;
constexpr int sum = 4;
constexpr int sum_of_squares = 5;
constexpr int limits = 6;
constexpr int counts = 7;
}  // namespace histogram
namespace image {
constexpr int height = 1;
constexpr int width = 2;
constexpr int channels = 3;
constexpr int png = 4;
}  // namespace image
namespace audio {
constexpr int sample_rate = 1;
constexpr int channels = 2;
constexpr int frames = 3;
constexpr int wav = 4;
constexpr int content_type = 5;
}  // namespace audio
// google.protobuf.Value
namespace any_value {
constexpr int number = 2;
constexpr int text = 3;
constexpr int boolean = 4;
}  // namespace any_value
// The messages of the hyper-parameter plugin.
namespace hparams {
constexpr int experiment = 2;
constexpr int session_start = 3;
}  // namespace hparams
namespace experiment {
constexpr int time_created = 3;
constexpr int setting = 4;
constexpr int name = 6;
}  // namespace experiment
namespace setting_info {
constexpr int name = 1;
constexpr int type = 4;
constexpr int text_type = 1;
constexpr int boolean_type = 2;
constexpr int number_type = 3;
}  // namespace setting_info
namespace session {
constexpr int setting = 1;
constexpr int group = 4;
constexpr int start_time = 5;
}  // namespace session
namespace map_entry {
constexpr int key = 1;
constexpr int value = 2;
}  // namespace map_entry
constexpr int summary_value = 1;
constexpr int session_status = 1;
constexpr int session_status_start = 1;
constexpr int shape_dimension = 2;
constexpr int dimension_size = 1;

// The checksum in the format of event files: masked, because a checksum of data that contains checksums is weak.
std::uint32_t masked_crc(const std::string& bytes) {
  const auto crc = core::crc32c(bytes.data(), bytes.size());
  return std::rotr(crc, 15) + 0xa282ead8U;
}

template <typename T>
std::string raw(T number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

Wire event_at(double time) {
  Wire message;
  message.put_double(event::wall_time, time);
  return message;
}

Wire event_at(double time, std::int64_t step) {
  auto message = event_at(time);
  message.put_int(event::step, step);
  return message;
}

std::string with_summary(Wire message, const std::vector<Wire>& values) {
  Wire summary;
  for (const auto& value : values) summary.put_message(summary_value, value);
  return message.put_message(event::summary, summary).bytes();
}

Wire plugin_metadata(const std::string& name, const std::string& content) {
  Wire data;
  data.put_bytes(plugin_data::name, name);
  if (!content.empty()) data.put_bytes(plugin_data::content, content);
  return Wire().put_message(plugin_data::in_metadata, data);
}

// A tensor with one element, the text.
Wire text_tensor(const std::string& text) {
  Wire dimension;
  dimension.put_int(dimension_size, 1);
  Wire shape;
  shape.put_message(shape_dimension, dimension);
  return Wire()
      .put_int(tensor::type, tensor::string_type)
      .put_message(tensor::shape, shape)
      .put_bytes(tensor::string_value, text);
}

Wire setting_value(const TrackerSetting& setting) {
  return std::visit(
      [](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) {
          return Wire().put_int(any_value::boolean, held ? 1 : 0);
        } else if constexpr (std::is_same_v<Held, std::string>) {
          return Wire().put_bytes(any_value::text, held);
        } else {
          return Wire().put_double(any_value::number, static_cast<double>(held));
        }
      },
      setting.value());
}

int type_of(const TrackerSetting& setting) {
  if (std::holds_alternative<std::string>(setting.value())) return setting_info::text_type;
  return std::holds_alternative<bool>(setting.value()) ? setting_info::boolean_type : setting_info::number_type;
}

Wire settings_summary(const std::string& tag, int field, const Wire& content) {
  const Wire data = Wire().put_message(field, content);  // version 0, the default
  return Wire().put_bytes(value::tag, tag).put_message(value::metadata, plugin_metadata("hparams", data.bytes()));
}

}  // namespace

Histogram histogram_of(const at::Tensor& numbers) {
  constexpr std::size_t bins = 30;
  const auto flat = numbers.detach().to(at::kCPU, at::kDouble).contiguous();
  const auto* begin = flat.const_data_ptr<double>();
  std::vector<double> finite;
  std::copy_if(begin, begin + flat.numel(), std::back_inserter(finite),
               [](double number) { return std::isfinite(number); });
  Histogram result;
  if (finite.empty()) return result;

  const auto [min, max] = std::ranges::minmax_element(finite);
  result.min = *min;
  result.max = *max;
  result.count = static_cast<std::int64_t>(finite.size());
  const double width = (result.max - result.min) / bins;
  if (!(width > 0)) {
    result.limits = {result.max};
  } else {
    for (std::size_t i = 1; i < bins; ++i) result.limits.push_back(result.min + width * static_cast<double>(i));
    result.limits.push_back(result.max);
  }
  result.counts.resize(result.limits.size());
  for (const double number : finite) {
    result.sum += number;
    result.sum_of_squares += number * number;
    const auto bin = std::ranges::lower_bound(result.limits, number) - result.limits.begin();
    ++result.counts[std::min(static_cast<std::size_t>(bin), result.counts.size() - 1)];
  }
  return result;
}

std::string framed(const std::string& event) {
  const auto length = raw(static_cast<std::uint64_t>(event.size()));
  return length + raw(masked_crc(length)) + event + raw(masked_crc(event));
}

std::string version_event(double time) {
  return event_at(time).put_bytes(event::file_version, "brain.Event:2").bytes();
}

std::string restart_event(double time, std::int64_t step) {
  const Wire start = Wire().put_int(session_status, session_status_start);
  return event_at(time, step).put_message(event::session_log, start).bytes();
}

std::string scalars_event(const TrackerRecord& record) {
  std::vector<Wire> values;
  for (const auto& [name, number] : record.values) {
    values.push_back(Wire().put_bytes(value::tag, name).put_float(value::simple_value, static_cast<float>(number)));
  }
  return with_summary(event_at(record.time, record.step), values);
}

std::string text_event(double time, std::int64_t step, const std::string& name, const std::string& text) {
  return with_summary(event_at(time, step), {Wire()
                                                 .put_bytes(value::tag, name + "/text_summary")
                                                 .put_message(value::tensor, text_tensor(text))
                                                 .put_message(value::metadata, plugin_metadata("text", ""))});
}

std::string histogram_event(double time, std::int64_t step, const std::string& name, const Histogram& numbers) {
  const Wire message = Wire()
                           .put_double(histogram::min, numbers.min)
                           .put_double(histogram::max, numbers.max)
                           .put_double(histogram::count, static_cast<double>(numbers.count))
                           .put_double(histogram::sum, numbers.sum)
                           .put_double(histogram::sum_of_squares, numbers.sum_of_squares)
                           .put_doubles(histogram::limits, numbers.limits)
                           .put_doubles(histogram::counts, numbers.counts);
  return with_summary(event_at(time, step),
                      {Wire().put_bytes(value::tag, name).put_message(value::histogram, message)});
}

std::string images_event(double time, std::int64_t step, const std::string& name,
                         const std::vector<EncodedImage>& images) {
  std::vector<Wire> values;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto& encoded = images[i];
    const Wire message = Wire()
                             .put_int(image::height, encoded.height)
                             .put_int(image::width, encoded.width)
                             .put_int(image::channels, encoded.channels)
                             .put_bytes(image::png, encoded.png);
    const auto tag = images.size() == 1 ? name : text::concat(name, '/', i);
    values.push_back(Wire().put_bytes(value::tag, tag).put_message(value::image, message));
  }
  return with_summary(event_at(time, step), values);
}

std::string audio_event(double time, std::int64_t step, const std::string& name, const EncodedAudio& audio) {
  const Wire message = Wire()
                           .put_float(audio::sample_rate, static_cast<float>(audio.sample_rate))
                           .put_int(audio::channels, audio.channels)
                           .put_int(audio::frames, audio.frames)
                           .put_bytes(audio::wav, audio.wav)
                           .put_bytes(audio::content_type, "audio/wav");
  return with_summary(event_at(time, step), {Wire().put_bytes(value::tag, name).put_message(value::audio, message)});
}

std::string settings_event(double time, const std::string& run, const TrackerConfig& config) {
  Wire all_runs;
  all_runs.put_double(experiment::time_created, time);
  Wire this_run;
  for (const auto& [name, setting] : config) {
    all_runs.put_message(experiment::setting,
                         Wire().put_bytes(setting_info::name, name).put_int(setting_info::type, type_of(setting)));
    this_run.put_message(session::setting,
                         Wire().put_bytes(map_entry::key, name).put_message(map_entry::value, setting_value(setting)));
  }
  all_runs.put_bytes(experiment::name, run);
  this_run.put_bytes(session::group, run).put_double(session::start_time, time);
  return with_summary(event_at(time),
                      {settings_summary("_hparams_/experiment", hparams::experiment, all_runs),
                       settings_summary("_hparams_/session_start_info", hparams::session_start, this_run)});
}

}  // namespace hortator::observe
