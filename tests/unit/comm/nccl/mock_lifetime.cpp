// Ids, and communicators from their beginning to their end.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/text/text.hpp"
#include "host_device.hpp"
#include "mock_state.hpp"

using namespace hortator;
using namespace hortator::test;

namespace {

struct Id {
  int maker;
  int serial;
};

Id read(const ncclUniqueId& id) {
  Id result{};
  std::memcpy(&result, &id, sizeof result);
  return result;
}

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

void check(const ncclConfig_t* config) {
  if (config == nullptr || config->magic != NCCL_API_MAGIC) return violation("a config that was not initialised");
  if (config->blocking != 0) violation("a communicator that blocks could not be aborted");
  if (config->splitShare != 1) violation("a communicator that does not share with its parts");
}

struct Split {
  int color, key, parent_rank, serial;
};

Split read_split(const Bytes& bytes) {
  Split result{};
  std::memcpy(&result, bytes.data(), sizeof result);
  return result;
}

template <typename T>
Bytes bytes_of(const T& value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

int& hortator::test::group_depth() {
  thread_local int depth = 0;
  return depth;
}

ncclResult_t ncclGetVersion(int* version) {
  *version = mock_nccl().version;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t code) {
  return code == ncclRemoteError ? "remote process exited or there was a network error" : "mock error";
}

const char* ncclGetLastError(ncclComm_t) { return "the mock's last words"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Entered entered("ncclGetUniqueId");
  const Id mine{.maker = world_rank(), .serial = next_serial()};
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &mine, sizeof mine);
  return ncclSuccess;
}

// The ranks are those of MPI_COMM_WORLD: nobody connects fewer but by a split.
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int count, ncclUniqueId* ids,
                                      ncclConfig_t* config) {
  const Entered entered("ncclCommInitRankScalable");
  check(config);
  mock_nccl().id_makers.clear();
  for (int i = 0; i < count; ++i) mock_nccl().id_makers.push_back(read(ids[i]).maker);
  *comm = new ncclComm{.rank = rank};
  for (int i = 0; i < ranks; ++i) (*comm)->ranks.push_back(i);
  const auto first = read(ids[0]);
  (*comm)->tag = tag_of(first.maker, first.serial);
  const auto* begin_of_ids = reinterpret_cast<const std::byte*>(ids);
  Bytes all_ids(begin_of_ids, begin_of_ids + sizeof(ncclUniqueId) * static_cast<std::size_t>(count));
  auto greeting = std::make_shared<Exchange>((*comm)->ranks, (*comm)->tag, all_ids);
  return begin(*comm, [greeting](ncclResult_t&) {
    if (!greeting->move_on()) return false;
    for (const auto& other : greeting->all()) {
      if (other != greeting->all()[0]) violation("ranks connect with different ids");
    }
    return true;
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const Entered entered("ncclCommGetAsyncError");
  if (const auto code = usable(comm, "ncclCommGetAsyncError"); code != ncclSuccess) return code;
  move_on(comm);
  *state = mock_nccl().async_error != ncclSuccess ? mock_nccl().async_error : comm->state;
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
  const Entered entered("ncclCommSplit");
  check(config);
  if (const auto code = usable(parent, "ncclCommSplit"); code != ncclSuccess) return code;
  if (!host_device().is_idle()) violation("ncclCommSplit while the device is at operations of the parent");
  const Split mine{.color = color, .key = key, .parent_rank = parent->rank, .serial = next_serial()};
  auto exchange = std::make_shared<Exchange>(parent->ranks, parent->tag, bytes_of(mine));
  *child = nullptr;
  return begin(parent, [=](ncclResult_t&) {
    if (!exchange->move_on()) return false;
    std::vector<Split> members;
    for (const auto& bytes : exchange->all()) members.push_back(read_split(bytes));
    std::erase_if(members, [&](const Split& other) { return other.color != color; });
    std::ranges::stable_sort(members, {}, &Split::key);
    auto* made = new ncclComm;
    for (const auto& member : members) {
      if (member.parent_rank == parent->rank) made->rank = static_cast<int>(made->ranks.size());
      made->ranks.push_back(parent->ranks[static_cast<std::size_t>(member.parent_rank)]);
    }
    made->tag = tag_of(made->ranks[0], members[0].serial);
    begin(made, [](ncclResult_t&) { return true; });
    *child = made;  // only now: NCCL does not set it before its parent is done either
    return true;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Entered entered("ncclCommFinalize");
  if (const auto code = usable(comm, "ncclCommFinalize"); code != ncclSuccess) return code;
  comm->is_finalized = true;
  return begin(comm, [](ncclResult_t&) { return true; });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Entered entered("ncclCommDestroy");
  if (const auto code = usable(comm, "ncclCommDestroy"); code != ncclSuccess) return code;
  if (!comm->is_finalized) violation("ncclCommDestroy before ncclCommFinalize");
  if (!comm->registered.empty()) violation("ncclCommDestroy with memory still registered");
  comm->is_destroyed = true;
  ++mock_nccl().destroyed;
  return ncclSuccess;
}

// One after the other, the first would wait for kernels of the second.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const Entered entered("ncclCommAbort");
  if (comm == nullptr || comm->is_aborted || comm->is_destroyed) {
    violation("ncclCommAbort of a communicator that is gone");
    return ncclInvalidArgument;
  }
  if (group_depth() == 0) violation("ncclCommAbort outside of a group");
  comm->is_aborted = true;
  comm->steps.clear();
  forget_registrations(comm);
  ++mock_nccl().aborted;
  if (mock_nccl().abort_hangs) std::this_thread::sleep_for(std::chrono::seconds(2));
  return ncclSuccess;
}
