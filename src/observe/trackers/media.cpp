#include "observe/trackers/media.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "core/text/text.hpp"

namespace hortator::observe {
namespace {

template <typename T>
void put_little_endian(std::string& bytes, T number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    bytes.push_back(static_cast<char>(static_cast<std::make_unsigned_t<T>>(number) >> (8 * i) & 0xffU));
}

std::string wav_of(const at::Tensor& samples, int sample_rate, std::int64_t channels) {
  constexpr std::uint32_t header_bytes = 44;
  const auto data_bytes = static_cast<std::uint32_t>(samples.numel() * 2);
  std::string wav = "RIFF";
  put_little_endian(wav, data_bytes + header_bytes - 8);
  wav += "WAVEfmt ";
  put_little_endian(wav, std::uint32_t{16});
  put_little_endian(wav, std::uint16_t{1});  // PCM
  put_little_endian(wav, static_cast<std::uint16_t>(channels));
  put_little_endian(wav, static_cast<std::uint32_t>(sample_rate));
  put_little_endian(wav, static_cast<std::uint32_t>(sample_rate * channels * 2));
  put_little_endian(wav, static_cast<std::uint16_t>(channels * 2));
  put_little_endian(wav, std::uint16_t{16});
  wav += "data";
  put_little_endian(wav, data_bytes);
  const auto* const numbers = samples.const_data_ptr<float>();
  for (std::int64_t i = 0; i < samples.numel(); ++i)
    put_little_endian(wav, static_cast<std::int16_t>(std::lround(std::clamp(numbers[i], -1.0F, 1.0F) * 32767)));
  return wav;
}

nlohmann::json json_of(const TrackerSetting& setting) {
  return std::visit([](const auto& value) { return nlohmann::json(value); }, setting.value());
}

// A cell must stay in its row and column.
std::string cell_of(const TrackerSetting& setting) {
  const auto* const text = std::get_if<std::string>(&setting.value());
  if (text == nullptr) return json_of(setting).dump();
  std::string cell;
  for (const char c : *text) {
    if (c == '|') cell += '\\';
    cell += c == '\n' || c == '\r' ? ' ' : c;
  }
  return cell;
}

}  // namespace

EncodedAudio encoded_audio(const at::Tensor& samples, int sample_rate) {
  const bool fits = samples.defined() && samples.is_floating_point() && samples.numel() > 0 && sample_rate > 0 &&
                    (samples.dim() == 1 || (samples.dim() == 2 && samples.size(1) <= 16));
  if (!fits) {
    throw UsageError({.what = text::concat("log_audio: got a tensor of shape ",
                                           samples.defined() ? samples.sizes() : at::IntArrayRef(), " at ", sample_rate,
                                           " samples a second"),
                      .why = "sound is numbers from -1 to 1: frames, or frames x channels",
                      .hint = "pass a floating-point tensor of one dimension, or transpose channels x frames"});
  }
  const auto numbers = samples.detach().to(at::kCPU, at::kFloat).contiguous();
  const auto channels = numbers.dim() == 1 ? 1 : numbers.size(1);
  return {.sample_rate = sample_rate,
          .channels = channels,
          .frames = numbers.size(0),
          .wav = wav_of(numbers, sample_rate, channels)};
}

ImageSize png_size(const std::string& content, const std::string& file) {
  constexpr std::size_t width_at = 16, height_at = 20;
  if (!content.starts_with("\x89PNG\r\n\x1a\n") || content.size() < height_at + 4) {
    throw UsageError({.what = text::concat("log_figure: ", text::quote(file), " is not a valid PNG file"),
                      .why = "trackers show plots as PNG images",
                      .hint = "save the plot as PNG, for example by `hortator plot --output plot.png`"});
  }
  const auto number_at = [&](std::size_t at) {
    std::int64_t number = 0;
    for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(content[at + i]);
    return number;
  };
  return {.width = number_at(width_at), .height = number_at(height_at)};
}

void check_table(const TrackerTable& table) {
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (table.rows[row].size() == table.columns.size()) continue;
    throw UsageError({.what = text::concat("log_table: row ", row, " has ",
                                           text::count(static_cast<long long>(table.rows[row].size()), "value"),
                                           ", and there are ", table.columns.size(), " columns"),
                      .why = "each row has a value for each column",
                      .hint = "fill missing values with an empty text"});
  }
}

std::string table_text(const TrackerTable& table) {
  check_table(table);
  const auto row = [](const std::vector<std::string>& cells) { return "| " + text::join(cells, " | ") + " |\n"; };
  std::vector<std::string> heads;
  for (const auto& column : table.columns) heads.push_back(cell_of(column));
  std::string lines = row(heads) + row(std::vector<std::string>(heads.size(), "---"));
  for (const auto& values : table.rows) {
    std::vector<std::string> cells;
    for (const auto& value : values) cells.push_back(cell_of(value));
    lines += row(cells);
  }
  return lines;
}

std::string table_json(const TrackerTable& table) {
  check_table(table);
  auto rows = nlohmann::json::array();
  for (const auto& values : table.rows) {
    auto cells = nlohmann::json::array();
    for (const auto& value : values) cells.push_back(json_of(value));
    rows.push_back(std::move(cells));
  }
  const nlohmann::json whole = {{"columns", table.columns}, {"data", std::move(rows)}};
  return whole.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hortator::observe
