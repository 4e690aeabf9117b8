// One fuzz program for all readers, so that what they share is compiled and instrumented once.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "target.hpp"

namespace fuzz {
namespace {

const Target* first = nullptr;  // of the list of targets
const Target* selected = nullptr;

}  // namespace

Target::Target(const char* target_name, Run target_run) : name(target_name), run(target_run), next(first) {
  first = this;
}

}  // namespace fuzz

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* name = std::getenv("HORTATOR_FUZZ_TARGET");
  for (const auto* target = fuzz::first; name != nullptr && target != nullptr; target = target->next) {
    if (std::strcmp(target->name, name) == 0) fuzz::selected = target;
  }
  if (fuzz::selected == nullptr) {
    std::fprintf(stderr, "HORTATOR_FUZZ_TARGET: expected one of these targets, got '%s':\n",
                 name == nullptr ? "" : name);
    for (const auto* target = fuzz::first; target != nullptr; target = target->next)
      std::fprintf(stderr, "  %s\n", target->name);
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::selected->run(data, size);
}
