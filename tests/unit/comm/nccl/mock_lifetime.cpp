// Ids, and communicators from their beginning to their end.
#include <mpi.h>

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
}

struct Split {
  int color, key, parent_rank, serial;
};

Split read_split(const Bytes& bytes) {
  Split result{};
  std::memcpy(&result, bytes.data(), std::min(bytes.size(), sizeof result));
  return result;
}

template <typename T>
Bytes bytes_of(const T& value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

ncclComm* make_child(const ncclComm* parent, int color, bool shares, const std::vector<Bytes>& all) {
  std::vector<Split> members;
  for (const auto& bytes : all) members.push_back(read_split(bytes));
  std::erase_if(members, [&](const Split& other) { return other.color != color; });
  std::ranges::stable_sort(members, {}, &Split::key);
  auto* made = new ncclComm;
  for (const auto& member : members) {
    if (member.parent_rank == parent->rank) made->rank = static_cast<int>(made->ranks.size());
    made->ranks.push_back(parent->ranks[static_cast<std::size_t>(member.parent_rank)]);
  }
  made->tag = tag_of(made->ranks[0], members[0].serial);
  made->device = parent->device;
  made->shares = shares;
  if (parent->shares) made->abort_flag = parent->abort_flag;
  return made;
}

}  // namespace

GroupState& hortator::test::group_state() {
  thread_local GroupState state;
  return state;
}

ncclResult_t ncclGetVersion(int* version) {
  *version = mock_nccl().version;
  return truth_of("ncclGetVersion").answer;
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
  return truth_of("ncclGetUniqueId").answer;
}

// The ranks are those of MPI_COMM_WORLD: only a split connects fewer.
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int count, ncclUniqueId* ids,
                                      ncclConfig_t* config) {
  open_wire();
  const Entered entered("ncclCommInitRankScalable");
  check(config);
  mock_nccl().id_makers.clear();
  for (int i = 0; i < count; ++i) mock_nccl().id_makers.push_back(read(ids[i]).maker);
  auto* made = new ncclComm{.rank = rank, .device = chosen_device(), .shares = config->splitShare == 1};
  home_device() = made->device;
  for (int i = 0; i < ranks; ++i) made->ranks.push_back(i);
  const auto first = read(ids[0]);
  made->tag = tag_of(first.maker, first.serial);
  const auto* begin_of_ids = reinterpret_cast<const std::byte*>(ids);
  const Bytes all_ids(begin_of_ids, begin_of_ids + sizeof(ncclUniqueId) * static_cast<std::size_t>(count));
  *comm = made;
  begin(made, [made, all_ids] {
    Exchange greeting(made->ranks, next_message(made), all_ids);
    if (!wait_in_job(made, [&] { return greeting.move_on(); })) return ncclInternalError;
    for (const auto& other : greeting.all()) {
      if (other != greeting.all()[0]) violation("ranks connect with different ids");
    }
    return ncclSuccess;
  });
  return truth_of("ncclCommInitRankScalable").answer;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const Entered entered("ncclCommGetAsyncError");
  if (const auto code = usable(comm, "ncclCommGetAsyncError"); code != ncclSuccess) return code;
  const ncclResult_t now = comm->state;
  if (now != ncclInProgress) join_job(comm);
  *state = mock_nccl().async_error != ncclSuccess ? mock_nccl().async_error : now;
  return truth_of("ncclCommGetAsyncError").answer;
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
  const Entered entered("ncclCommSplit");
  check(config);
  if (const auto code = usable(parent, "ncclCommSplit"); code != ncclSuccess) return code;
  if (!is_idle()) violation("ncclCommSplit while the device is at operations of the parent");
  const Split mine{.color = color, .key = key, .parent_rank = parent->rank, .serial = next_serial()};
  *child = nullptr;
  begin(parent, [=, shares = config->splitShare == 1, number = next_message(parent), late = mock_nccl().latency] {
    Exchange exchange(parent->ranks, number, bytes_of(mine));
    if (!wait_in_job(parent, [&] { return exchange.move_on(); })) return ncclInternalError;
    auto* made = make_child(parent, color, shares, exchange.all());
    // NCCL's sources write the child before the parent's state; PyTorch has seen it come later.
    std::thread([=] {
      std::this_thread::sleep_for(4 * late);
      std::atomic_ref(*child).store(made, std::memory_order_release);
    }).detach();
    return ncclSuccess;
  });
  return truth_of("ncclCommSplit").answer;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Entered entered("ncclCommFinalize");
  if (const auto code = usable(comm, "ncclCommFinalize"); code != ncclSuccess) return code;
  comm->is_finalized = true;
  begin(comm, [] { return ncclSuccess; });
  return truth_of("ncclCommFinalize").answer;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Entered entered("ncclCommDestroy");
  if (const auto code = usable(comm, "ncclCommDestroy"); code != ncclSuccess) return code;
  if (!comm->is_finalized) violation("ncclCommDestroy before ncclCommFinalize blocks without limit");
  comm->is_destroyed = true;
  join_job(comm);
  forget_registrations(comm);
  ++mock_nccl().destroyed;
  return truth_of("ncclCommDestroy").answer;
}

// One after the other, the first would wait for kernels of the second.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const Entered entered("ncclCommAbort");
  if (comm == nullptr || comm->is_aborted || comm->is_destroyed) {
    violation("ncclCommAbort of a communicator that is gone");
    return ncclInvalidArgument;
  }
  check_device("ncclCommAbort", comm->device);
  if (group_state().depth == 0) violation("ncclCommAbort outside of a group");
  group_state().blocks = true;
  comm->is_aborted = true;
  *comm->abort_flag = true;
  join_job(comm);
  forget_registrations(comm);
  ++mock_nccl().aborted;
  if (mock_nccl().abort_hangs) std::this_thread::sleep_for(std::chrono::seconds(2));
  return truth_of("ncclCommAbort").answer;
}
