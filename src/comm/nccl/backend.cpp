#include "comm/nccl/backend.hpp"

#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <type_traits>

#include "comm/nccl/alarm.hpp"
#include "comm/nccl/communicator.hpp"
#include "comm/nccl/devices.hpp"
#include "comm/nccl/ids.hpp"
#include "comm/nccl/version.hpp"
#include "core/log.hpp"
#include "machine/device/device.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

void check_library(const mpi::Communicator& world) {
  NcclLibrary loaded;
  mpi::all_or_none(world, [&] {
    loaded = loaded_nccl();
    check_nccl_version(NCCL_VERSION_CODE, loaded);
  });
  mpi::same_on_all(world, nccl_version_text(loaded.version), "the version of NCCL");
}

// NcclDevice as MPI carries it: plain data.
struct DeviceRecord {
  int rank = 0;
  int openable = 0;
  std::array<char, 128> uuid{};
  std::array<char, 256> name{};
};
static_assert(std::is_trivially_copyable_v<DeviceRecord>);

// A longer text is cut; the last byte stays zero.
template <std::size_t Size>
void store_text(std::string_view text, std::array<char, Size>& bytes) {
  text.copy(bytes.data(), Size - 1);
}

DeviceRecord record_of(const NcclDevice& device) {
  DeviceRecord record{.rank = device.rank, .openable = device.openable};
  store_text(device.uuid, record.uuid);
  store_text(device.name, record.name);
  return record;
}

NcclDevice device_of(const DeviceRecord& record) {
  return {.rank = record.rank, .uuid = record.uuid.data(), .name = record.name.data(), .openable = record.openable};
}

// Logs one line for the whole job, with one node as the example. `warning` is empty where there is none. Returns
// whether there is one on any rank. @collective
bool warn_of(const mpi::Communicator& world, const std::string& warning) {
  constexpr int nobody = std::numeric_limits<int>::max();
  const int example = mpi::all_reduce(world, warning.empty() ? nobody : world.rank(), mpi::Op::min);
  if (example == nobody) return false;
  const auto first = mpi::broadcast(world, std::string_view(warning), example);
  if (world.rank() == 0) log::warn(first);
  return true;
}

// NCCL takes devices that a rank cannot open for reachable, and fails at the first connection. Keeps the user's
// setting.
void use_no_direct_links() { setenv("NCCL_P2P_DISABLE", "1", /*overwrite=*/0); }

// @collective
void check_devices(const mpi::Communicator& world, c10::Device device) {
  const auto node = world.node();
  NcclDevice mine{.rank = world.rank()};
  mpi::all_or_none(world, [&] {
    const auto identity = machine::identify(device);
    mine.uuid = identity.uuid;
    mine.name = identity.name;
    mine.openable = machine::device_files().openable;
  });
  std::vector<NcclDevice> of_node;
  for (const auto& record : mpi::all_gather(node, record_of(mine))) of_node.push_back(device_of(record));
  std::string warning;
  mpi::all_or_none(world, [&] { warning = check_nccl_devices(of_node); });
  if (warn_of(world, warning)) use_no_direct_links();
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(const mpi::Communicator& world, c10::Device device,
                                                     std::chrono::milliseconds patience) {
  check_library(world);
  check_devices(world, device);
  machine::set_current(device);
  auto ids = share_ids(world, ranks_an_id);
  auto alarm = NcclAlarm::over(world);
  auto handle =
      std::make_shared<NcclHandle>(NcclOrder::of(device), ids, world.size(), world.rank(), patience, std::move(alarm));
  auto communicator = std::make_unique<NcclCommunicator>(world.duplicate(), device, std::move(handle));
  // NCCL connects at the first operation. Now its buffers still find memory, and a network that does not work shows.
  communicator->barrier();
  return communicator;
}

}  // namespace hortator::comm
