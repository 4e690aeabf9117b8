#include "runtime/world.hpp"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <atomic>
#include <limits>
#include <utility>

#include "core/environment/environment.hpp"
#include "core/environment/openmp.hpp"
#include "core/log.hpp"
#include "machine/cpu/device_binding.hpp"
#include "machine/cpu/device_choice.hpp"
#include "machine/cpu/device_locality.hpp"
#include "machine/device/device.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "mpi/rehearsed_world.hpp"
#include "runtime/build_identity.hpp"
#include "runtime/compatibility.hpp"
#include "runtime/debug_mode.hpp"
#include "runtime/environment/cpu_warnings.hpp"
#include "runtime/environment/environment_warnings.hpp"
#include "runtime/identity/launcher.hpp"
#include "runtime/identity/run_folder.hpp"
#include "runtime/log_level.hpp"
#include "runtime/stream_checks.hpp"
#include "runtime/watchdog/time_limit.hpp"

namespace hortator::runtime {
namespace {

mpi::Communicator open_communicator(const StateOptions& options) {
  check_libtorch(TORCH_VERSION, libtorch_version());
  start_mpi();
  // An application that passes a communicator knows its ranks; the launcher's variables do not matter.
  if (options.communicator) return mpi::Communicator::of_fortran(*options.communicator);
  auto world = mpi::Communicator::world();
  check_together(launcher(), world.size(), mpi::library_version());
  return world;
}

std::vector<machine::CpuSet> sets_of_node(const mpi::Communicator& node, const machine::CpuSet& cpus) {
  std::vector<machine::CpuSet> sets;
  if (mpi::is_rehearsed(node)) return {cpus};  // the other ranks would have others
  for (const auto& ranges : mpi::all_gather(node, machine::to_ranges(cpus)))
    sets.push_back(machine::from_ranges(ranges));
  return sets;
}

machine::ThreadPlan plan_own_threads(const mpi::Communicator& node, const machine::CpuSet& cpus) {
  const auto sets = sets_of_node(node, cpus);
  const int own = mpi::is_rehearsed(node) ? 0 : node.rank();
  return machine::plan_threads(sets, own, core::asked_threads(core::process_variables()));
}

// Logs one line for the whole job. Nothing is changed: the launcher's settings ask for it.
void warn_of_far_devices(const mpi::Communicator& comm, const machine::DeviceBinding& binding) {
  const bool is_far = binding.outcome == machine::DeviceBinding::Outcome::launcher_far;
  const int count = mpi::all_reduce(comm, is_far ? 1 : 0, mpi::Op::sum);
  static std::atomic_flag warned;  // programs make several States
  if (count == 0 || comm.rank() != 0 || warned.test_and_set()) return;
  log::warn(
      count, " of ", text::count(comm.size(), "rank"),
      " have no CPU beside their GPU: all that they give it crosses the node. Bind ranks to the CPUs beside their "
      "GPUs (srun --gpus-per-node=N --cpu-bind=... or --ntasks-per-socket, mpirun --map-by numa), or leave "
      "binding out, and it is done here");
}

// Logs one line for the whole job, with one rank as the example.
void warn_if_crowded(const World& world) {
  constexpr int nobody = std::numeric_limits<int>::max();
  const auto& comm = world.comm();
  const bool crowded = world.threads().is_crowded;
  const int example = mpi::all_reduce(comm, crowded ? comm.rank() : nobody, mpi::Op::min);
  if (example == nobody) return;
  const int count = mpi::all_reduce(comm, crowded ? 1 : 0, mpi::Op::sum);
  const auto mine =
      text::concat("rank ", comm.rank(), " on ", world.host(), " has CPUs ", machine::to_ranges(world.cpus()),
                   ", up to ", world.threads().ranks_per_cpu, " ranks on each");
  const auto text = mpi::broadcast(comm, std::string_view(mine), example);
  static std::atomic_flag warned;  // programs make several States
  if (comm.rank() != 0 || warned.test_and_set()) return;
  log::warn(
      count, " of ", text::count(comm.size(), "rank"),
      " have less than one CPU of their own and wait for each other: ", text,
      ". Start fewer ranks a node, or bind them (srun --cpus-per-task=N --cpu-bind=cores, mpirun --bind-to core)");
}

// Logs one line for the whole job. OpenMP has read its variables long before.
void warn_of_spinning(const World& world) {
  const bool spins = world.threads().spins_on_others && !core::has_wait_policy(core::process_variables());
  const int count = mpi::all_reduce(world.comm(), spins ? 1 : 0, mpi::Op::sum);
  static std::atomic_flag warned;  // programs make several States
  if (count == 0 || world.comm().rank() != 0 || warned.test_and_set()) return;
  log::warn(count, " of ", text::count(world.comm().size(), "rank"),
            " have more threads than CPUs: threads that wait spin, and keep the CPUs from those that work. Start the "
            "ranks with `hortator launch`, set OMP_WAIT_POLICY=passive, or use fewer threads (OMP_NUM_THREADS)");
}

void warn_of_few_cpus(const World& world) {
  auto launcher = world.device().is_cpu() ? cpus_of_launcher() : std::nullopt;
  warn_of_cpus(world.comm(), world.host(),
               {.threads = world.threads().threads,
                .own = world.cpus(),
                .of_node = sets_of_node(world.node(), world.cpus()),
                .of_launcher = std::move(launcher)});
}

// The kind of accelerator on which the ranks work; null: on the CPU. @collective
const machine::DeviceKind* choose_kind(const mpi::Communicator& comm, bool cpu_asked) {
  const auto* kind = machine::accelerator_kind();
  mpi::all_or_none(comm, [&] {
    const bool is_wanted =
        machine::wants_accelerator({.cpu_asked = cpu_asked || machine::asked_for_cpu(core::process_variables()),
                                    .environment = core::process_variables()("HORTATOR_DEVICE"),
                                    .kind = kind,
                                    .visible = machine::visible_devices().size()});
    if (!is_wanted) kind = nullptr;
  });
  mpi::same_on_all(comm, kind != nullptr ? kind->name : "cpu", "the kind of device");
  return kind;
}

// @collective
c10::Device take_device(const machine::DeviceKind& kind, const mpi::Communicator& comm, const mpi::Communicator& node) {
  std::vector<std::string> mine;
  mpi::all_or_none(comm, [&] { mine = machine::visible_uuids(); });
  std::vector<std::vector<std::string>> of_node;
  for (const auto& devices : mpi::all_gather(node, text::join(mine, ","))) of_node.push_back(text::split(devices, ','));
  c10::Device device(kind.type);
  mpi::all_or_none(comm, [&] {
    const auto sharing = machine::asked_sharing(core::process_variables());
    const int index = machine::pick_device(kind, of_node, node.rank(), sharing);
    device.set_index(static_cast<c10::DeviceIndex>(index));
    machine::set_current(device);
  });
  return device;
}

std::chrono::milliseconds agreed_limit(const mpi::Communicator& comm, const StateOptions& options) {
  std::chrono::milliseconds limit{};
  mpi::all_or_none(comm, [&] {
    check_log_level();
    limit = collective_timeout(options.collective_timeout, core::process_variables());
  });
  return limit;
}

std::unique_ptr<Watchdog> make_watchdog(const World& world) {
  const auto& comm = world.comm();
  if (comm.size() == 1 || mpi::is_rehearsed(comm)) return nullptr;
  bool in_debug_mode = false;
  mpi::all_or_none(comm, [&] { in_debug_mode = asked_for_debug_mode(core::process_variables()); });
  auto run = mpi::broadcast(comm, std::string_view(comm.rank() == 0 ? new_run_id() : ""));
  return std::make_unique<Watchdog>(
      comm, world.node(), world.topology(),
      Watchdog::Settings{.limit = world.collective_timeout(), .in_debug_mode = in_debug_mode, .run = std::move(run)});
}

}  // namespace

World::World(const StateOptions& options)
    : comm_(open_communicator(options)), node_(comm_.node()), host_(mpi::host_name()) {
  log::set_identity(comm_.rank(), host_);
  set_run_rank(comm_.rank());
  check_same_build(comm_);
  topology_ = find_topology(comm_, node_);

  mpi::all_or_none(comm_, [&] { cpus_ = machine::own_cpu_set(); });
  if (const auto* const kind = choose_kind(comm_, options.cpu)) {
    mpi::all_or_none(comm_, mpi::require_level_for_devices);
    device_ = take_device(*kind, comm_, node_);
    move_beside_device();
  }
  mpi::all_or_none(comm_, [&] { check_streams_if_asked(device_, core::process_variables()); });
  threads_ = plan_own_threads(node_, cpus_);
  at::set_num_threads(threads_.threads);
  if (mpi::rehearsed_world()) {
    collective_timeout_ = agreed_limit(comm_, options);
    return;
  }
  warn_if_crowded(*this);
  warn_of_spinning(*this);
  warn_of_few_cpus(*this);
  warn_of_environment(topology_);

  collective_timeout_ = agreed_limit(comm_, options);
  watchdog_ = make_watchdog(*this);
}

// @collective
void World::move_beside_device() {
  machine::DeviceLocality place;
  mpi::all_or_none(comm_, [&] { place = machine::find_locality(machine::identify(device_).pci_address); });
  auto binding = machine::bind_to_device(sets_of_node(node_, cpus_), node_.rank(), machine::online_cpus(), place.cpus);
  if (binding.outcome == machine::DeviceBinding::Outcome::bind && !machine::bind_own_threads(cpus_, binding.cpus))
    binding = {.outcome = machine::DeviceBinding::Outcome::unknown, .cpus = cpus_};
  cpus_ = binding.cpus;
  warn_of_far_devices(comm_, binding);
  std::vector<std::string> parts;
  for (auto& part : {to_string(place), to_string(binding.outcome)}) {
    if (!part.empty()) parts.push_back(part);
  }
  device_place_ = text::join(parts);
}

DistributedType World::distributed_type() const { return machine::distributed_type(device_, comm_.size()); }

}  // namespace hortator::runtime
