// Memory of NCCL's own, and what communicators know of it.
#include <cstdlib>
#include <map>

#include "host_device.hpp"
#include "mock_state.hpp"

using namespace hortator::test;

namespace {

std::map<void*, std::size_t>& blocks() {
  static std::map<void*, std::size_t> all;
  return all;
}

std::map<void*, int>& uses() {  // by how many communicators
  static std::map<void*, int> all;
  return all;
}

}  // namespace

void hortator::test::forget_registrations(ncclComm* comm) {
  for (const auto& [begin, size] : comm->registered) --uses()[begin];
  mock_nccl().registrations -= static_cast<int>(comm->registered.size());
  comm->registered.clear();
}

ncclResult_t ncclMemAlloc(void** begin, std::size_t size) {
  const Entered entered("ncclMemAlloc");
  check_device("ncclMemAlloc", home_device());
  if (mock_nccl().memory_error != ncclSuccess) return mock_nccl().memory_error;
  if (size > host_device().free_bytes) return ncclUnhandledCudaError;
  host_device().free_bytes -= size;
  *begin = std::malloc(size);
  blocks()[*begin] = size;
  ++mock_nccl().memory_blocks;
  return truth_of("ncclMemAlloc").answer;
}

ncclResult_t ncclMemFree(void* begin) {
  const Entered entered("ncclMemFree");
  check_device("ncclMemFree", home_device());
  const auto block = blocks().extract(begin);
  if (!block) violation("ncclMemFree of memory that is not NCCL's");
  if (block) host_device().free_bytes += block.mapped();
  if (uses()[begin] > 0) violation("ncclMemFree of memory that is still registered");
  std::free(begin);
  --mock_nccl().memory_blocks;
  return truth_of("ncclMemFree").answer;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* begin, std::size_t size, void** handle) {
  const Entered entered("ncclCommRegister");
  if (const auto code = usable(comm, "ncclCommRegister"); code != ncclSuccess) return code;
  const auto block = blocks().find(begin);
  if (block == blocks().end() || block->second < size) violation("ncclCommRegister of memory that is not NCCL's");
  comm->registered[begin] = size;
  ++uses()[begin];
  ++mock_nccl().registrations;
  *handle = begin;
  return truth_of("ncclCommRegister").answer;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  const Entered entered("ncclCommDeregister");
  if (const auto code = usable(comm, "ncclCommDeregister"); code != ncclSuccess) return code;
  if (comm->registered.erase(handle) == 0) violation("ncclCommDeregister of what is not registered");
  --uses()[handle];
  --mock_nccl().registrations;
  return truth_of("ncclCommDeregister").answer;
}
