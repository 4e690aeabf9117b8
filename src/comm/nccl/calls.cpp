#include "comm/nccl/calls.hpp"

#include <algorithm>
#include <future>
#include <thread>
#include <vector>

#include "core/text/text.hpp"
#include "machine/device/device.hpp"

namespace hortator::comm {

using namespace std::chrono_literals;

ncclResult_t nccl_state(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  const auto code = ncclCommGetAsyncError(comm, &state);
  return code == ncclSuccess ? state : code;
}

std::chrono::microseconds nccl_pause(std::chrono::steady_clock::duration waited) {
  if (waited < 200us) return 0us;
  return std::clamp(std::chrono::duration_cast<std::chrono::microseconds>(waited / 8), 50us, 1000us);
}

ncclResult_t settle(ncclComm_t comm, std::chrono::milliseconds patience, const std::function<bool()>& is_pointless) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const auto state = nccl_state(comm);
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (state != ncclInProgress || is_pointless() || waited > patience) return state;
    const auto pause = nccl_pause(waited);
    pause == 0us ? std::this_thread::yield() : std::this_thread::sleep_for(pause);
  }
}

Problem nccl_timeout(std::string_view operation, std::chrono::milliseconds patience) {
  return {.what = text::concat("NCCL was not done with ", operation, " after ",
                               std::chrono::duration<double>(patience).count(), " s"),
          .why =
              "a rank has not come to this point, or the ranks do not reach each other; all NCCL communicators of this "
              "process were aborted",
          .hint =
              "see whether every rank is alive and what it does; NCCL_DEBUG=INFO shows which connections NCCL tries, "
              "NCCL_SOCKET_IFNAME names the network interface that it should use"};
}

bool abort_within(c10::Device device, std::span<const ncclComm_t> comms, std::chrono::milliseconds patience) {
  std::packaged_task<void()> task([device, doomed = std::vector(comms.begin(), comms.end())] {
    // The end of the group makes a context on the thread's device, which at first is the node's first one.
    machine::set_current(device);
    ncclGroupStart();
    for (const auto comm : doomed) ncclCommAbort(comm);
    ncclGroupEnd();
  });
  const auto done = task.get_future();
  // A group belongs to its thread. NCCL sometimes never returns from an abort, hence a detached thread.
  std::thread(std::move(task)).detach();
  return done.wait_for(std::min<std::chrono::milliseconds>(patience, 30s)) == std::future_status::ready;
}

}  // namespace hortator::comm
