// Fuzzes the readers of what runs write in their folders: any bytes are refused, or are a record that is read again as
// it is written.
#include <cstdint>
#include <hortator/error.hpp>
#include <string>

#include "observe/operators/operator_record.hpp"
#include "observe/status/host_report.hpp"
#include "observe/status/measure.hpp"
#include "observe/status/restart_record.hpp"
#include "observe/status/status_record.hpp"
#include "runtime/identity/ending_record.hpp"
#include "runtime/identity/flight_record.hpp"
#include "runtime/identity/lock_holder.hpp"
#include "target.hpp"

using namespace hortator;

FUZZ_TARGET(run_records) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto report = observe::parse_host_report(text)) {
    if (!observe::parse_host_report(observe::to_row(*report))) __builtin_trap();
  }
  if (const auto restart = observe::parse_restart(text)) {
    if (!observe::parse_restart(observe::to_row(*restart))) __builtin_trap();
  }
  if (const auto measure = observe::parse_measure(text)) {
    if (!observe::parse_measure(observe::to_json(*measure))) __builtin_trap();
  }
  if (const auto status = observe::parse_status(text)) {
    if (observe::to_row(*status).size() != observe::row_bytes) __builtin_trap();
  }
  if (const auto session = observe::parse_session(text)) {
    if (!observe::parse_session(observe::to_row(*session))) __builtin_trap();
  }
  if (const auto ending = runtime::parse_ending(text)) {
    if (runtime::to_row(*ending).size() != runtime::ending_bytes) __builtin_trap();
  }
  runtime::parse_flight(text);
  const auto holder = runtime::parse_holder(text);
  if (runtime::parse_holder(runtime::to_json(holder)).pid != holder.pid) __builtin_trap();
  try {
    const auto step = observe::parse_step_record(text, "rank-00000.jsonl");
    if (observe::to_text(observe::parse_step_record(observe::to_text(step), "again")) != observe::to_text(step))
      __builtin_trap();
  } catch (const UsageError&) {
  }
  return 0;
}
