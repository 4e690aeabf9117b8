#include <exception>

#include "accelerator/training/memory_by_owner.hpp"
#include "accelerator/training/training.hpp"
#include "core/log.hpp"
#include "core/unix_time.hpp"
#include "data/loader/waited.hpp"

// How this rank is, for those who watch the run.
namespace hortator::accelerator {
namespace {

double seconds_of(SavePace::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

RunFacts Training::facts() {
  RunFacts facts{.loops = progress->loops(),
                 .rows = trackers.rows().string(),
                 .values = trackers.latest(),
                 .resumed_after = trackers.resumed_after()};
  for (const auto& model : models) {
    const auto times = model->times();
    facts.communicating += times.copying + times.starting + times.waiting + times.buffers;
  }
  facts.waiting_for_data = data::waited();
  const auto& saved = stopping.pace().latest();
  if (saved) {
    facts.save = {.at = core::unix_time(saved->at),
                  .seconds = seconds_of(saved->took),
                  .longest = seconds_of(*stopping.pace().cost())};
  }
  if (const auto left = stopping.job_time().known_left())
    facts.deadline = core::unix_time(std::chrono::system_clock::now() + *left);
  return facts;
}

std::int64_t Training::gradient_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& model : models) {
    for (const auto& parameter : model->module().parameters())
      bytes += parameter.requires_grad() ? static_cast<std::int64_t>(parameter.nbytes()) : 0;
  }
  return bytes;
}

void Training::report_status() {
  if (!status.is_due()) return;
  if (!device().is_cpu()) {
    const auto values = device_memory_values(device_memory(device()));
    progress->set("GiB", values[0].second);
    progress->set("peak GiB", values[1].second);
  }
  status.write(facts());
}

void Training::tell(const std::string& phase) {
  if (!status.was_written()) return;
  auto now = facts();
  now.phase = phase;
  status.write(now);
}

void Training::tell_end() {
  if (status.is_measured()) status.write_measure(facts(), gradient_bytes_);
  if (!status.was_written()) return;
  auto now = facts();
  now.phase = "over";
  now.is_over = true;
  status.write(now);
}

// A run that fails is told of by its failure.
Training::~Training() {
  try {
    if (std::uncaught_exceptions() == 0) tell_end();
  } catch (const std::exception& error) {
    log::warn("the run's end was not noted: ", error.what());
  }
  try {
    forget();
  } catch (const std::exception& error) {  // a rank has gone that has a part of them
    log::warn("what was sharded has no values any more: ", error.what());
  }
}

}  // namespace hortator::accelerator
