#include "mock_state.hpp"

#include <mutex>
#include <thread>

#include "core/text/text.hpp"

namespace hortator::test {
namespace {

std::atomic<int> inside = 0;

// Its own, so that no message of a test is taken for one of NCCL's.
MPI_Comm wire() {
  static MPI_Comm comm = MPI_COMM_NULL;
  if (comm == MPI_COMM_NULL) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return comm;
}

int serial = 0;

}  // namespace

MockNccl& mock_nccl() {
  static MockNccl mock;
  return mock;
}

void reset_mock_nccl() {
  mock_nccl() = {};
  MPI_Barrier(wire());
}

void violation(const std::string& what) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  mock_nccl().violations.push_back(what);
}

Entered::Entered(const char* call) {
  if (inside.fetch_add(1) != 0) violation(text::concat(call, " while another thread is in NCCL"));
  if (mock_nccl().linger.count() > 0) std::this_thread::sleep_for(mock_nccl().linger);
}
Entered::~Entered() { inside.fetch_sub(1); }

int next_serial() { return ++serial; }
int tag_of(int beginner, int number) { return beginner * 10000 + number; }

Exchange::Exchange(std::vector<int> ranks, int tag, Bytes mine)
    : ranks_(std::move(ranks)), tag_(tag), mine_(std::move(mine)), all_(ranks_.size()), has_come_(ranks_.size()) {
  for (const int rank : ranks_) {
    sent_.emplace_back();
    MPI_Isend(mine_.data(), static_cast<int>(mine_.size()), MPI_BYTE, rank, tag_, wire(), &sent_.back());
  }
}

Exchange::~Exchange() {
  for (auto& request : sent_) {
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

bool Exchange::move_on() {
  bool is_done = true;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (has_come_[i]) continue;
    int is_here = 0;
    MPI_Message message{};
    MPI_Status status{};
    MPI_Improbe(ranks_[i], tag_, wire(), &is_here, &message, &status);
    is_done = is_done && is_here != 0;
    if (is_here == 0) continue;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    all_[i].resize(static_cast<std::size_t>(size));
    MPI_Mrecv(all_[i].data(), size, MPI_BYTE, &message, &status);
    has_come_[i] = true;
  }
  int is_sent = 0;
  MPI_Testall(static_cast<int>(sent_.size()), sent_.data(), &is_sent, MPI_STATUSES_IGNORE);
  return is_done && is_sent != 0;
}

ncclResult_t usable(ncclComm* comm, const char* call) {
  const auto refuse = [&](const char* why) {
    violation(text::concat(call, " on a communicator that ", why));
    return ncclInvalidArgument;
  };
  if (comm == nullptr) return refuse("is null");
  if (comm->is_aborted) return refuse("was aborted");
  if (comm->is_destroyed) return refuse("was destroyed");
  if (comm->is_finalized && std::string(call) != "ncclCommDestroy" && std::string(call) != "ncclCommGetAsyncError") {
    return refuse("was finalized");
  }
  if (!comm->steps.empty() && std::string(call) != "ncclCommGetAsyncError") return refuse("is still busy");
  return ncclSuccess;
}

ncclResult_t begin(ncclComm* comm, Step step) {
  comm->steps.push_back(std::move(step));
  comm->polls_left = mock_nccl().polls;
  comm->state = ncclInProgress;
  return ncclInProgress;
}

void move_on(ncclComm* comm) {
  if (comm->polls_left-- > 0) return;
  while (!comm->steps.empty()) {
    ncclResult_t state = ncclSuccess;
    if (!comm->steps.front()(state)) return;
    comm->steps.pop_front();
    if (state != ncclSuccess) comm->steps.clear();
    if (comm->steps.empty()) comm->state = state;
  }
}

}  // namespace hortator::test
