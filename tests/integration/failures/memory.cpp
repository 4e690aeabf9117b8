// Ranks that run out of memory during the search for a batch size, in the way that the first argument selects.
#include <chrono>
#include <hortator/hortator.hpp>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string_view>

namespace {

using hortator::Accelerator;

void announce_failure() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::cout << "failing at " + std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) + "\n"
            << std::flush;
}

// The other ranks wait in a collective that cannot be aborted: this rank must not wait for them for ever.
void alone(Accelerator& accelerator) {
  find_executable_batch_size(accelerator, {.start = 4, .patience = std::chrono::seconds(1)}, [&](std::int64_t) {
    if (accelerator.is_last_process()) {
      announce_failure();
      throw std::bad_alloc();
    }
    accelerator.reduce(at::ones({100000}));
  });
}

// All ranks stop at the same collective: they continue with any back end.
void together(Accelerator& accelerator) {
  const auto sum = find_executable_batch_size(accelerator, {.start = 4}, [&](std::int64_t batch_size) {
    accelerator.reduce(at::ones({10}));
    if (batch_size > 2) throw std::bad_alloc();
    return accelerator.reduce(at::ones({10}))[0].item<int>();
  });
  if (sum != accelerator.num_processes()) throw std::runtime_error("the ranks' sum is wrong");
}

// An error other than out of memory ends the job as fast as usual.
void other(Accelerator& accelerator) {
  find_executable_batch_size(accelerator, {.start = 4}, [&](std::int64_t) {
    if (accelerator.is_last_process()) {
      announce_failure();
      throw std::runtime_error("the last rank has a problem");
    }
    accelerator.reduce(at::ones({10}));
  });
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    const std::string_view ending = argv[1];
    Accelerator accelerator;
    if (ending == "alone") return alone(accelerator);
    ending == "together" ? together(accelerator) : other(accelerator);
  });
}
