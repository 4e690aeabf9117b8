// Training's status rows, and its end.

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/memory_by_owner.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/run_status.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/log.hpp"
#include "core/time.hpp"
#include "data/loader/loader_core.hpp"
#include "runtime/identity/outcome.hpp"

namespace hortator::accelerator {
namespace {

double seconds_of(SavePace::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

RunFacts Training::facts() {
  RunFacts facts{.loops = output.progress().loops(),
                 .rows = output.trackers().rows().string(),
                 .mesh = channels.mesh().text(),
                 .values = output.trackers().latest(),
                 .resumed_after = output.trackers().resumed_after(),
                 .updates_before = output.updates() - output.status().updates(),
                 .samples = data::samples_taken()};
  for (const auto& model : prepared.models()) {
    const auto times = model->times();
    facts.communicating += times.copying + times.starting + times.waiting + times.buffers;
  }
  facts.waiting_for_data = data::waited();
  auto& stopping = control.stopping();
  if (const auto& saved = stopping.pace().latest()) {
    facts.save = {.at = core::unix_time(saved->at),
                  .seconds = seconds_of(saved->took),
                  .longest = seconds_of(*stopping.pace().cost())};
  }
  if (const auto left = stopping.job_time().known_left())
    facts.deadline = core::unix_time(std::chrono::system_clock::now() + *left);
  return facts;
}

void Training::report_status() {
  if (!output.status().is_due()) return;
  if (!device().is_cpu()) {
    const auto values = device_memory_values(device_memory(device()));
    output.progress().set("GiB", values[0].second);
    output.progress().set("peak GiB", values[1].second);
  }
  output.status().write(facts());
}

void Training::enter_phase(const std::string& phase) {
  if (!output.status().was_written()) return;
  auto now = facts();
  now.phase = phase;
  output.status().write(now);
}

void Training::publish_end() {
  auto& status = output.status();
  runtime::note_updates(output.resumed_after(), output.updates() - output.resumed_after().value_or(0));
  runtime::note_energy(status.energy(data::samples_taken()));
  if (status.is_measured()) status.write_measure(facts(), gradient_bytes_);
  if (!status.was_written() && (status.updates() == 0 || !status.has_files())) return;
  auto now = facts();
  now.phase = "over";
  now.loops = output.progress().last_loops();
  now.is_over = true;
  status.write(now);
}

}  // namespace hortator::accelerator
