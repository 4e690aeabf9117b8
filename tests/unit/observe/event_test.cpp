#include "observe/trackers/event.hpp"

#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>

#include "observe/trackers/event_cut.hpp"
#include "observe/trackers/tensorboard_tracker.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::content_of;

TEST_CASE("event records have the bytes that TensorBoard's own messages have (tests/tools/tensorboard-events.py)") {
  constexpr double time = 1700000000.5;
  const observe::EncodedImage image{.width = 3, .height = 2, .channels = 3, .png = "\x89PNG not really"};
  const observe::Histogram histogram{
      .min = -1, .max = 3, .count = 4, .sum = 4.5, .sum_of_squares = 12.25, .limits = {0, 1.5, 3}, .counts = {1, 1, 2}};
  const std::vector<std::string> events = {
      observe::version_event(time),
      observe::restart_event(time, 41),
      observe::scalars_event({.step = 41, .time = time, .values = {{"loss", 0.25}, {"lr", 1e-3}}}),
      observe::text_event(time, 300, "sample", "to be, or not"),
      observe::histogram_event(time, 41, "weights", histogram),
      observe::images_event(time, 41, "faces", {image, image}),
      observe::settings_event(time, "digits", {{"batch", 32}, {"fused", false}, {"lr", 1e-3}, {"name", "small"}})};
  std::string ours;
  for (const auto& event : events) ours += observe::framed(event);
  const auto theirs = content_of(std::filesystem::path(HORTATOR_TEST_FIXTURES) / "events.tfevents");
  REQUIRE(theirs.size() > 500);
  CHECK(ours == theirs);
}

TEST_CASE("sound is a WAV file of 16 bits in an event, tables are text, and plots have their size") {
  const auto audio = observe::encoded_audio(at::tensor({0.0F, 1.0F, -1.0F, 2.0F}).view({2, 2}), 8000);
  CHECK(audio.channels == 2);
  CHECK(audio.frames == 2);
  using namespace std::string_literals;
  CHECK(audio.wav ==
        "RIFF,\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0\x40\x1f\0\0\0\x7d\0\0\x04\0\x10\0"
        "data\x08\0\0\0\0\0\xff\x7f\x01\x80\xff\x7f"s);
  // Summary.Audio: sample_rate 1, num_channels 2, length_frames 3, encoded_audio_string 4, content_type 5
  const auto event = observe::audio_event(1, 2, "a", audio);
  CHECK(event.find("\x0d\0\0\xfa\x45\x10\x02\x18\x02\x22\x34RIFF"s) != std::string::npos);
  CHECK(event.ends_with("\x2a\x09"s + "audio/wav"));
  CHECK_THROWS_WITH(observe::encoded_audio(at::ones({2, 3, 4}), 8000), ContainsSubstring("log_audio: got a tensor"));
  CHECK_THROWS_WITH(observe::encoded_audio(at::ones({4}), 0), ContainsSubstring("at 0 samples a second"));
  CHECK(observe::table_text({.columns = {"x", "y"}, .rows = {{1, "a|b\nc"}}}) ==
        "| x | y |\n| --- | --- |\n| 1 | a\\|b c |\n");
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\2\0\0\0\3more", 28);
  CHECK(observe::png_size(png, "plot.png").width == 258);
  CHECK(observe::png_size(png, "plot.png").height == 3);
  CHECK_THROWS_WITH(observe::png_size("GIF89a", "plot.gif"), ContainsSubstring("'plot.gif' is not a valid PNG file"));
}

TEST_CASE("later steps and unfinished records are removed from event files") {
  const auto record = [](std::int64_t step) {
    return observe::framed(observe::scalars_event({.step = step, .time = 1, .values = {{"x", 1}}}));
  };
  for (const std::int64_t step : {0L, 1L, 127L, 128L, 300L, 1L << 40})
    CHECK(observe::step_of_event(observe::restart_event(1, step)) == step);
  CHECK_FALSE(observe::step_of_event(observe::version_event(1)).has_value());
  CHECK_FALSE(observe::step_of_event("").has_value());
  const auto head = observe::framed(observe::version_event(1));
  const auto whole = head + record(1) + record(300) + record(2) + observe::framed(observe::text_event(1, 7, "a", "b"));
  CHECK(observe::without_later(whole, 300) == whole);
  CHECK(observe::without_later(whole, 2) == head + record(1) + record(2));
  CHECK(observe::without_later(whole + record(1).substr(0, 20), 300) == whole);
  CHECK(observe::without_later(head + std::string(40, '\xff'), 300) == head);
}

TEST_CASE("a histogram counts every finite number once") {
  const auto infinity = std::numeric_limits<double>::infinity();
  const auto numbers = at::tensor({0.0, 0.0, 1.0, 2.0, 3.0, infinity, -infinity, std::nan("")});
  const auto histogram = observe::histogram_of(numbers);
  CHECK(histogram.count == 5);
  CHECK(histogram.min == 0);
  CHECK(histogram.max == 3);
  CHECK(histogram.sum == 6);
  CHECK(histogram.sum_of_squares == 14);
  REQUIRE(histogram.limits.size() == histogram.counts.size());
  CHECK(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0) == 5);
  CHECK(histogram.counts.front() == 2);
  CHECK(histogram.limits.back() == 3);

  const auto constant = observe::histogram_of(at::full({4, 4}, 0.1, at::kFloat));
  CHECK(constant.counts == std::vector<double>{16});
  CHECK(observe::histogram_of(at::zeros({0})).count == 0);
}

TEST_CASE("event files sort in the order of their creation, whatever the clocks say") {
  const test::Folder folder(State(), "event_files");
  if (!State().is_main_process()) return;
  std::filesystem::create_directories(folder.path());
  const auto first = observe::next_event_file(folder.path(), 1700000000, "n1");
  CHECK_THAT(first, StartsWith("events.out.tfevents.1700000000.n1."));
  std::ofstream(folder.path() / first) << "x";
  const auto second = observe::next_event_file(folder.path(), 1699999000, "n2");
  CHECK(first < second);
  CHECK_THAT(observe::next_event_file(folder.path() / "absent", 5, "n1"),
             StartsWith("events.out.tfevents.0000000005."));
}
