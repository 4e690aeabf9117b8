// Preloaded. MPICH over UCX polls without yielding its core, and the tests run more ranks than cores. This makes a rank
// without progress yield, like Open MPI's mpi_yield_when_idle.
#include <dlfcn.h>
#include <sched.h>

extern "C" __attribute__((visibility("default"))) unsigned ucp_worker_progress(void* worker) {
  using Progress = unsigned (*)(void*);
  static const auto next = reinterpret_cast<Progress>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  const unsigned moved = next(worker);
  if (moved == 0) sched_yield();
  return moved;
}
