#include "runtime/stream_checks.hpp"

#include <atomic>
#include <exception>
#include <hortator/error.hpp>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "machine/device/device.hpp"
#include "machine/races/stream_watch.hpp"
#include "runtime/ending/late_failure.hpp"

namespace hortator::runtime {
namespace {

constexpr auto stream_switch = "HORTATOR_DEBUG_STREAMS";

void report_race(const std::string& finding) {
  log::warn(stream_switch, ": ", finding);
  note_late_failure(std::make_exception_ptr(
      Error({.what = text::concat("Work on the device is not in order. ", finding),
             .why = text::concat("the values depend on which of the two is faster (", stream_switch, ")"),
             .hint = "let the later one's stream wait for an event of the earlier one's, and record tensors on each "
                     "stream that uses them"})));
}

// Where there is a device, another part of the program may use it.
void watch_nothing() {
  if (machine::visible_devices().empty()) {
    throw UsageError({.what = "HORTATOR_DEBUG_STREAMS is set, and this program runs on the CPU",
                      .why = "only accelerators have streams",
                      .hint = "unset it, or use a device"});
  }
  static std::atomic_flag noted;  // programs make several States
  if (!noted.test_and_set())
    log::info(stream_switch, ": nothing is watched in training on the CPU, which has no streams");
}

}  // namespace

void check_streams_if_asked(c10::Device device, const core::Variables& variables) {
  const auto is_asked = core::yes_or_no(variables, stream_switch,
                                        "set it to 1 to check the order of all work on the device, or unset it");
  if (!is_asked.value_or(false)) return;
  if (device.is_cpu()) return watch_nothing();
  // Never destroyed: static objects release tensors at exit.
  [[maybe_unused]] static const auto* const watch = new machine::StreamWatch(device.type(), report_race);
}

}  // namespace hortator::runtime
