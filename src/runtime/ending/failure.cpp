#include "runtime/ending/failure.hpp"

#include <c10/util/Exception.h>
#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <hortator/error.hpp>
#include <hortator/version.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <typeinfo>

#include "core/activity/updates.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"
#include "runtime/ending/last_signal.hpp"
#include "runtime/identity/claim.hpp"
#include "runtime/identity/ending_file.hpp"
#include "runtime/identity/launcher.hpp"

namespace hortator::runtime {
namespace {

using namespace std::chrono_literals;

// MPI_Abort ends a job within about half a second; two seconds are the limit for all of it.
constexpr auto time_to_be_ended = 1000ms;
constexpr auto head_start_of_rank_0 = 700ms;

// The usual exit code for wrong usage.
constexpr int usage_exit_code = 2;

std::string name_of(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? name.get() : type.name();
}

std::string current_type_name() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  return type != nullptr ? name_of(*type) : "unknown type";
}

std::string place(const std::source_location& where) {
  return text::concat(text::file_name(where.file_name()), ':', where.line());
}

Party party_of(const Run& run, const Failure& failure) {
  return failure.party.value_or(Party{.rank = run.rank, .host = run.host, .pid = getpid()});
}

void speak(const Run& run, const Failure& failure) {
  // Flushes the program's output, which MPI_Abort would lose.
  std::cout.flush();
  std::fflush(stdout);
  log::write_last_line(failure_line(run, failure));
  if (run.is_foreign_folder) return;
  if (!write_failure(run.folder, run.id, failure_record(run, failure))) {
    log::write_last_line("Could not write " + (run.folder / "failure.json").string());
  }
}

EndingRecord ending_of(const Run& run, const Failure& failure) {
  const auto party = party_of(run, failure);
  return {.run_id = run.id,
          .reporter = run.rank,
          .rank = party.rank,
          .world = run.world_size,
          .on_host = launcher().local_size.value_or(0),
          .host = party.host,
          .pid = party.pid,
          .time = core::unix_time(),
          .kind = failure.kind,
          .type = failure.type,
          .signal = failure.signal,
          .updates = activity::updates(),
          .exit_code = failure.exit_code,
          .where = failure.where,
          .problem = failure.problem};
}

std::atomic<bool>& reported_before_exit() {
  static std::atomic<bool> value = false;
  return value;
}

}  // namespace

Failure describe(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const UsageError& error) {
    return {.problem = error.what(),
            .where = place(error.where()),
            .rank = error.rank(),
            .exit_code = usage_exit_code,
            .kind = "usage",
            .type = name_of(typeid(error))};
  } catch (const Error& error) {
    return {
        .problem = error.what(), .where = place(error.where()), .rank = error.rank(), .type = name_of(typeid(error))};
  } catch (const c10::Error& error) {
    return {.problem = error.what_without_backtrace(), .type = name_of(typeid(error))};
  } catch (const std::exception& error) {
    return {.problem = error.what(), .type = name_of(typeid(error))};
  } catch (...) {
    return {.problem = "An exception of type " + current_type_name() + " was thrown", .type = current_type_name()};
  }
}

std::string failure_line(const Run& run, const Failure& failure) {
  std::string problem;
  for (const auto& line : text::split(failure.problem, '\n')) {
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    const auto end = line.find_last_not_of(" \t\r");
    if (!problem.empty()) problem += ' ';
    problem.append(line, begin, end - begin + 1);
  }
  const auto party = party_of(run, failure);
  const bool is_of_another = !failure.party && failure.rank && *failure.rank != party.rank;
  const auto whose = is_of_another ? text::concat("on rank ", *failure.rank, ": ") : "";
  return text::concat("hortator: rank ", party.rank, " (", party.host, "): ", whose, problem);
}

std::string failure_record(const Run& run, const Failure& failure) {
  const auto party = party_of(run, failure);
  nlohmann::ordered_json record = {{"run_id", run.id},
                                   {"rank", party.rank},
                                   {"host", party.host},
                                   {"pid", party.pid},
                                   {"exit_code", failure.exit_code},
                                   {"problem", failure.problem},
                                   {"where", nullptr},
                                   {"time", core::utc()},
                                   {"hortator", HORTATOR_VERSION},
                                   {"kind", failure.kind},
                                   {"type", failure.type},
                                   {"world_size", run.world_size},
                                   {"on_host", launcher().local_size.value_or(0)},
                                   {"signal", failure.signal},
                                   {"at", core::unix_time()},
                                   {"updates", activity::updates()}};
  if (!failure.where.empty()) record["where"] = failure.where;
  if (!failure.details.empty()) record["details"] = text::split(failure.details, '\n');
  // Exceptions may carry any bytes: invalid ones are replaced, so that the record can be written.
  return record.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void report(const Failure& failure) {
  note_last_signal(has_reported);
  const Run run = current_run();
  const bool is_mine = failure.rank.value_or(run.rank) == run.rank;
  // Before the wait for the turn to speak: only the first rank speaks, but each one that fails has its row.
  if (is_mine) {
    write_ending(run, ending_of(run, failure));
  } else {
    write_flight();
  }
  if (!is_mine) std::this_thread::sleep_for(time_to_be_ended);
  if (!is_mine && run.is_apart) return;
  const auto claim = run.is_foreign_folder ? Claim::impossible : claim_failure(run.folder, run.id);
  if (claim == Claim::lost) {
    if (is_mine) std::this_thread::sleep_for(time_to_be_ended);
    return;
  }
  const bool others_may_speak = claim == Claim::impossible && !failure.rank && run.rank != 0;
  if (others_may_speak) std::this_thread::sleep_for(head_start_of_rank_0);
  speak(run, failure);
}

void report_before_exit(const Failure& failure) {
  reported_before_exit() = true;
  report(failure);
}

bool was_reported_before_exit() { return reported_before_exit(); }

}  // namespace hortator::runtime
