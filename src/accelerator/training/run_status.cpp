#include "accelerator/training/run_status.hpp"

#include <algorithm>

#include "accelerator/training/memory_by_owner.hpp"
#include "core/activity/updates.hpp"
#include "core/environment/environment.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "core/time.hpp"
#include "core/whole_file.hpp"
#include "machine/device/device.hpp"
#include "observe/status/measure.hpp"
#include "runtime/build_identity.hpp"
#include "runtime/identity/folder_lock.hpp"
#include "runtime/identity/lock_holder.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::accelerator {
namespace {

RunStatus::Clock::duration ticks_of(double count) {
  return std::chrono::duration_cast<RunStatus::Clock::duration>(std::chrono::duration<double>(count));
}

constexpr std::int64_t cold_updates = 3;

double share_of_time(double part, double whole) { return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0; }

}  // namespace

double status_interval(int rank, int world) { return rank == 0 ? 1 : std::max(1.0, world / 64.0); }

RunStatus::RunStatus(const runtime::World& world, const std::filesystem::path& run_folder)
    : folder_(std::filesystem::absolute(run_folder) / observe::status_folder),
      rank_(world.topology().rank),
      world_(world.comm().size()),
      host_(world.host()),
      process_(core::process_id()),
      cpus_(static_cast<int>(world.cpus().size())),
      device_(world.device()),
      job_(runtime::job_of(core::process_variables())),
      every_(status_interval(rank_, world_)),
      file_(folder_ / observe::ranks_file, rank_),
      metrics_(folder_.parent_path(), observe::metrics_period()),
      comment_(rank_ == 0 ? job_ : "", observe::comment_period()),
      started_(core::unix_time()),
      next_(Clock::now() + ticks_of(every_)),
      measure_file_(rank_ == 0 ? core::process_variables()("HORTATOR_MEASURE").value_or("") : ""),
      nodes_(world.topology().nodes),
      node_ranks_(world.topology().local_size),
      is_leader_(world.topology().is_leader()),
      node_energy_(machine::energy_root()),
      before_{.at = Clock::now(), .cpu = observe::cpu_seconds()} {}

void RunStatus::count_backward(bool averages) {
  if (!averages) return;
  ++updates_;
  activity::count_update();
  if (!is_measured()) return;
  count_flops();
  last_update_ = Clock::now();
  if (!first_update_) first_update_ = last_update_;
  if (updates_ == cold_updates + 1) warm_update_ = last_update_;
}

// Counts those of one early update, from one backward pass to the next, since later updates are timed.
void RunStatus::count_flops() {
  if (updates_ == 1) flop_counter_.emplace();
  if (updates_ != 2 || !flop_counter_) return;
  flops_per_update_ = flop_counter_->count();
  flop_counter_.reset();
}

// Leaves the first updates out, in which caches are cold and memory is fresh, unless there are only a few updates.
void RunStatus::write_measure(const RunFacts& facts, std::int64_t gradient_bytes) {
  const bool is_warm = warm_update_ && updates_ >= 3 * cold_updates;
  const auto from = is_warm ? warm_update_ : first_update_;
  const auto intervals = static_cast<double>(is_warm ? updates_ - cold_updates - 1 : updates_ - 1);
  const auto since = [](Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
  };
  const observe::Measure measure{.identity = runtime::build_identity(),
                                 .ranks = world_,
                                 .nodes = nodes_,
                                 .cpus = cpus_,
                                 .updates = updates_,
                                 .seconds_per_update = intervals > 0 ? since(*from, last_update_) / intervals : 0,
                                 .seconds = since(begun_, Clock::now()),
                                 .cpu_seconds = observe::cpu_seconds(),
                                 .communicating = facts.communicating,
                                 .waiting_for_data = facts.waiting_for_data,
                                 .gradient_bytes = gradient_bytes,
                                 .device = device_.is_cpu() ? "" : machine::identify(device_).name,
                                 .flops_per_update = flops_per_update_};
  if (!core::write_whole(measure_file_, measure_file_.string() + ".new", to_json(measure) + '\n'))
    log::warn("the measure could not be written to ", measure_file_.string());
  measure_file_.clear();
}

bool RunStatus::has_files() const {
  std::error_code none;
  const std::filesystem::directory_iterator entries(folder_.parent_path(), none);
  return std::any_of(begin(entries), end(entries),
                     [](const auto& entry) { return entry.path().filename() != runtime::folder_lock_file; });
}

void RunStatus::begin_session(const RunFacts& facts) {
  if (rank_ != 0) return;
  const observe::Session session{.run_id = runtime::current_run().id,
                                 .started = started_,
                                 .world = world_,
                                 .job = job_,
                                 .resumed_after = facts.resumed_after};
  observe::append_row(folder_ / observe::sessions_file, to_row(session));
}

// The monitor is made here, so that runs of less than a second never load its library.
void RunStatus::look_at_device(observe::RankStatus& status) {
  if (device_.is_cpu()) return;
  const auto memory = device_memory(device_);
  status.device_bytes = static_cast<std::int64_t>(memory.allocated_bytes);
  status.device_peak_bytes = static_cast<std::int64_t>(memory.peak_bytes);
  const auto* const library = machine::kind_of(device_)->monitor;
  if (library == nullptr) return;
  if (!monitor_) monitor_.emplace(machine::identify(device_), *library);
  const auto use = monitor_->last();
  if (!use) return;
  status.device_used_bytes = static_cast<std::int64_t>(use->used_bytes);
  status.device_total_bytes = static_cast<std::int64_t>(use->total_bytes);
  status.device_busy = use->busy;
  note_device_energy(*use);
}

// From the first answer on: the driver counts since it was loaded.
void RunStatus::note_device_energy(const machine::DeviceUse& use) {
  if (!use.joules || node_energy_.includes_devices()) return;
  if (!device_joules_before_) device_joules_before_ = use.joules;
  device_joules_ = *use.joules - *device_joules_before_;
}

runtime::Energy RunStatus::energy(std::int64_t samples) {
  runtime::Energy energy{.joules = device_joules_, .samples = samples};
  if (const auto node = is_leader_ ? node_energy_.joules() : std::nullopt) {
    energy.joules += *node;
    energy.source = node_energy_.source();
  }
  if (device_joules_before_) energy.source += energy.source.empty() ? "device" : " + device";
  return energy;
}

std::vector<std::pair<std::string, double>> RunStatus::energy_values() const {
  if (rank_ != 0 || energy_.source.empty()) return {};
  constexpr double joules_of_kwh = 3.6e6;
  std::vector<std::pair<std::string, double>> values = {{"node_kWh", energy_.joules / joules_of_kwh}};
  const double node_samples = static_cast<double>(energy_.samples) * node_ranks_ / world_;
  if (node_samples > 0) values.emplace_back("node_J_per_sample", energy_.joules / node_samples);
  return values;
}

observe::RankStatus RunStatus::status_at(const Moment& here, const RunFacts& facts) const {
  const double passed = std::chrono::duration<double>(here.at - before_.at).count();
  return {.run_id = runtime::current_run().id,
          .rank = rank_,
          .world = world_,
          .mesh = facts.mesh,
          .host = host_,
          .process = process_,
          .job = job_,
          .started = started_,
          .time = core::unix_time(),
          .every = every_,
          .is_over = facts.is_over,
          .phase = facts.phase,
          .loops = facts.loops,
          .updates = facts.updates_before + updates_,
          .updates_per_second = passed > 0 ? static_cast<double>(here.updates - before_.updates) / passed : 0,
          .cpus_used = passed > 0 ? (here.cpu - before_.cpu) / passed : 0,
          .cpus = cpus_,
          .memory_bytes = observe::resident_bytes(),
          .communication = share_of_time(here.communicating - before_.communicating, passed),
          .data_wait = share_of_time(here.waiting_for_data - before_.waiting_for_data, passed),
          .save = facts.save,
          .deadline = facts.deadline};
}

// The time since the row before is too short for rates.
void RunStatus::keep_last_rates(observe::RankStatus& status) const {
  status.updates_per_second = last_.updates_per_second;
  status.cpus_used = last_.cpus_used;
  status.communication = last_.communication;
  status.data_wait = last_.data_wait;
  status.device_busy = last_.device_busy;
}

void RunStatus::write(const RunFacts& facts) {
  next_ = Clock::now() + ticks_of(every_);
  if (is_lost_) return;
  const Moment here{.at = Clock::now(),
                    .updates = updates_,
                    .cpu = observe::cpu_seconds(),
                    .communicating = facts.communicating,
                    .waiting_for_data = facts.waiting_for_data};
  auto status = status_at(here, facts);
  look_at_device(status);
  energy_ = energy(facts.samples);
  status.joules = energy_.joules;
  status.energy_source = energy_.source;
  if (facts.is_over && written_) keep_last_rates(status);
  if (rank_ == 0) {
    status.rows = facts.rows;
    status.values = facts.values;
    status.samples = facts.samples;
  }
  if (!std::exchange(written_, true)) begin_session(facts);
  before_ = here;
  last_ = status;
  is_lost_ = !file_.write(to_row(status));
  if (rank_ == 0) comment_.report(status);
  if (rank_ == 0 && !is_lost_ && (metrics_.is_due() || (status.is_over && metrics_.is_on()))) metrics_.write(status);
  if (is_lost_ && rank_ == 0)
    log::warn("hortator watch cannot show this run: ", folder_.string(), " cannot be written");
}

}  // namespace hortator::accelerator
