#include <hortator/error.hpp>
#include <hortator/tracker.hpp>

#include "core/text/text.hpp"

namespace hortator {

Tracker::~Tracker() = default;

void Tracker::start(const TrackerStart& /*start*/) {}
void Tracker::store_config(const TrackerConfig& /*config*/) {}
void Tracker::rewind(std::int64_t /*last_step*/) {}
void Tracker::flush() {}
void Tracker::finish() {}

void Tracker::log_text(const std::string& /*name*/, const std::string& /*text*/, std::int64_t /*step*/) {
  refuse("text");
}

void Tracker::log_histogram(const std::string& /*name*/, const at::Tensor& /*numbers*/, std::int64_t /*step*/) {
  refuse("histograms");
}

void Tracker::log_images(const std::string& /*name*/, const at::Tensor& /*images*/, std::int64_t /*step*/) {
  refuse("images");
}

void Tracker::refuse(std::string_view what) const {
  throw UsageError({.what = text::concat("The tracker ", text::quote(name()), " cannot keep ", what),
                    .why = "it records only numbers by step",
                    .hint = "add 'tensorboard' to log_with and use get_tracker(\"tensorboard\")"});
}

}  // namespace hortator
