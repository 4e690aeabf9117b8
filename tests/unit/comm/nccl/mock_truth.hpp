#pragma once

#include <nccl.h>

#include <array>
#include <string_view>

/// What NCCL answers, read in the sources of version 2.30.7 (tag v2.30.7-1, files under src/).
namespace hortator::test {

struct CallTruth {
  std::string_view name;
  ncclResult_t answer;  ///< to a right call, on a communicator that does not block
  bool uses_device;     ///< depends on the calling thread's device, or sets it and sets it back, which makes a context
  std::string_view source;
};

inline constexpr std::array<CallTruth, 20> nccl_truth = {{
    {"ncclGetVersion", ncclSuccess, false, "init.cc:176"},
    {"ncclGetUniqueId", ncclSuccess, false, "init.cc:183"},
    {"ncclCommInitRankScalable", ncclInProgress, true, "init.cc:2695: ends with ncclCommGetAsyncError"},
    {"ncclCommSplit", ncclSuccess, true,
     "init.cc:3392: returns `res`, to which NCCLCHECK(ncclGroupEndInternal()) does not assign ncclInProgress"},
    {"ncclCommFinalize", ncclInProgress, false, "init.cc:2783: ends with ncclCommGetAsyncError"},
    {"ncclCommDestroy", ncclSuccess, true, "init.cc:2879: destroyFlag makes the group a blocking one (group.cc:44)"},
    {"ncclCommAbort", ncclSuccess, true, "init.cc:3025: as ncclCommDestroy; in a group its work is done at the end"},
    {"ncclCommGetAsyncError", ncclSuccess, false, "init.cc:3449: joins the thread of the group once that is done"},
    {"ncclGroupStart", ncclSuccess, false, "group.cc:97"},
    {"ncclGroupEnd", ncclInProgress, false, "group.cc:766: a thread a group; ncclSuccess if it has nothing to do"},
    {"ncclAllReduce", ncclInProgress, false,
     "enqueue.cc:3124: ends with ncclCommGetAsyncError; in a group ncclSuccess"},
    {"ncclReduceScatter", ncclInProgress, false, "enqueue.cc:3124"},
    {"ncclAllGather", ncclInProgress, false, "enqueue.cc:3124"},
    {"ncclBroadcast", ncclInProgress, false, "enqueue.cc:3124"},
    {"ncclSend", ncclInProgress, false, "collectives.cc: ends in ncclEnqueueCheck, as ncclAllReduce"},
    {"ncclRecv", ncclInProgress, false, "collectives.cc: as ncclSend"},
    {"ncclMemAlloc", ncclSuccess, true,
     "allocator.cc:17: memory of the thread's device; no memory is ncclUnhandledCudaError"},
    {"ncclMemFree", ncclSuccess, true, "allocator.cc:110"},
    {"ncclCommRegister", ncclSuccess, false, "register.cc:155: asks nothing of the communicator's state"},
    {"ncclCommDeregister", ncclSuccess, true, "register.cc:203"},
}};

constexpr const CallTruth& truth_of(std::string_view name) {
  for (const auto& call : nccl_truth) {
    if (call.name == name) return call;
  }
  throw "the mock has no such function";
}

}  // namespace hortator::test
