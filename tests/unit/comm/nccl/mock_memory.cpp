// Memory of NCCL's own, and what communicators know of it.
#include <cstdlib>
#include <map>

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
  if (mock_nccl().memory_error != ncclSuccess) return mock_nccl().memory_error;
  *begin = std::malloc(size);
  blocks()[*begin] = size;
  ++mock_nccl().memory_blocks;
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void* begin) {
  const Entered entered("ncclMemFree");
  if (blocks().erase(begin) == 0) violation("ncclMemFree of memory that is not NCCL's");
  if (uses()[begin] > 0) violation("ncclMemFree of memory that is still registered");
  std::free(begin);
  --mock_nccl().memory_blocks;
  return ncclSuccess;
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
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  const Entered entered("ncclCommDeregister");
  if (const auto code = usable(comm, "ncclCommDeregister"); code != ncclSuccess) return code;
  if (comm->registered.erase(handle) == 0) violation("ncclCommDeregister of what is not registered");
  --uses()[handle];
  --mock_nccl().registrations;
  return ncclSuccess;
}
