#include "observe/trackers/event.hpp"

#include <bit>
#include <cstring>

#include "core/checksum/crc32c.hpp"
#include "core/text/text.hpp"
#include "observe/trackers/wire.hpp"

namespace hortator::observe {
namespace {

// Fields of the messages.
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
constexpr int tensor = 8;
constexpr int metadata = 9;
}  // namespace value
constexpr int summary_value = 1;
constexpr int session_status = 1;
constexpr int session_start = 1;

// A checksum of data that holds checksums would be weak: so they are masked.
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
  for (const auto& one : values) summary.put_message(summary_value, one);
  return message.put_message(event::summary, summary).bytes();
}

Wire plugin(const std::string& name, const std::string& content) {
  constexpr int plugin_data = 1;
  Wire data;
  data.put_bytes(1, name);
  if (!content.empty()) data.put_bytes(2, content);
  return Wire().put_message(plugin_data, data);
}

// A tensor of one text.
Wire text_tensor(const std::string& text) {
  constexpr int string_type = 7;
  Wire dimension;
  dimension.put_int(1, 1);
  Wire shape;
  shape.put_message(2, dimension);
  return Wire().put_int(1, string_type).put_message(2, shape).put_bytes(8, text);
}

// google.protobuf.Value
Wire any_value(const TrackerSetting& setting) {
  return std::visit(
      [](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) {
          return Wire().put_int(4, held ? 1 : 0);
        } else if constexpr (std::is_same_v<Held, std::string>) {
          return Wire().put_bytes(3, held);
        } else {
          return Wire().put_double(2, static_cast<double>(held));
        }
      },
      setting.value());
}

int type_of(const TrackerSetting& setting) {
  constexpr int text = 1;
  constexpr int yes_or_no = 2;
  constexpr int number = 3;
  if (std::holds_alternative<std::string>(setting.value())) return text;
  return std::holds_alternative<bool>(setting.value()) ? yes_or_no : number;
}

Wire settings_summary(const std::string& tag, int field, const Wire& content) {
  const Wire data = Wire().put_message(field, content);  // version 0, the default
  return Wire().put_bytes(value::tag, tag).put_message(value::metadata, plugin("hparams", data.bytes()));
}

}  // namespace

std::string framed(const std::string& event) {
  const auto length = raw(static_cast<std::uint64_t>(event.size()));
  return length + raw(masked_crc(length)) + event + raw(masked_crc(event));
}

std::string version_event(double time) {
  return event_at(time).put_bytes(event::file_version, "brain.Event:2").bytes();
}

std::string restart_event(double time, std::int64_t step) {
  const Wire session = Wire().put_int(session_status, session_start);
  return event_at(time, step).put_message(event::session_log, session).bytes();
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
                                                 .put_message(value::metadata, plugin("text", ""))});
}

std::string histogram_event(double time, std::int64_t step, const std::string& name, const Histogram& histogram) {
  const Wire message = Wire()
                           .put_double(1, histogram.min)
                           .put_double(2, histogram.max)
                           .put_double(3, static_cast<double>(histogram.count))
                           .put_double(4, histogram.sum)
                           .put_double(5, histogram.sum_of_squares)
                           .put_doubles(6, histogram.limits)
                           .put_doubles(7, histogram.counts);
  return with_summary(event_at(time, step),
                      {Wire().put_bytes(value::tag, name).put_message(value::histogram, message)});
}

std::string images_event(double time, std::int64_t step, const std::string& name,
                         const std::vector<EncodedImage>& images) {
  std::vector<Wire> values;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto& image = images[i];
    const Wire message =
        Wire().put_int(1, image.height).put_int(2, image.width).put_int(3, image.channels).put_bytes(4, image.png);
    const auto tag = images.size() == 1 ? name : text::concat(name, '/', i);
    values.push_back(Wire().put_bytes(value::tag, tag).put_message(value::image, message));
  }
  return with_summary(event_at(time, step), values);
}

std::string settings_event(double time, const std::string& run, const TrackerConfig& config) {
  Wire experiment;
  experiment.put_double(3, time);
  Wire session;
  for (const auto& [name, setting] : config) {
    experiment.put_message(4, Wire().put_bytes(1, name).put_int(4, type_of(setting)));
    session.put_message(1, Wire().put_bytes(1, name).put_message(2, any_value(setting)));
  }
  experiment.put_bytes(6, run);
  session.put_bytes(4, run).put_double(5, time);
  return with_summary(event_at(time), {settings_summary("_hparams_/experiment", 2, experiment),
                                       settings_summary("_hparams_/session_start_info", 3, session)});
}

}  // namespace hortator::observe
