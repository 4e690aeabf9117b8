#include "machine/cpu/openmp_threads.hpp"

#include <dlfcn.h>

namespace hortator::machine {
namespace {

// LibTorch brings OpenMP along, and calls the one that the program has loaded first: the solver's, if it has one.
struct OpenmpCalls {
  int (*max_threads)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  void (*set_threads)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
};

const OpenmpCalls& calls() noexcept {
  static const OpenmpCalls found;
  return found;
}

}  // namespace

std::optional<int> openmp_threads() noexcept {
  if (calls().max_threads == nullptr || calls().set_threads == nullptr) return {};
  return calls().max_threads();
}

void set_openmp_threads(int threads) noexcept {
  if (calls().set_threads != nullptr) calls().set_threads(threads);
}

}  // namespace hortator::machine
