#pragma once

#include <cstddef>
#include <cstdint>

namespace fuzz {

// What a target does with one input; it always returns 0.
using Run = int (*)(const std::uint8_t* data, std::size_t size);

// Registers a target under its name. HORTATOR_FUZZ_TARGET selects one of them when the program starts (program.cpp).
struct Target {
  Target(const char* target_name, Run target_run);

  const char* name;
  Run run;
  const Target* next;
};

}  // namespace fuzz

// FUZZ_TARGET(name) { ... return 0; } defines a target with the parameters `data` and `size`.
#define FUZZ_TARGET(name)                                             \
  static int fuzz_##name(const std::uint8_t* data, std::size_t size); \
  static const fuzz::Target target_##name(#name, fuzz_##name);        \
  static int fuzz_##name(const std::uint8_t* data, std::size_t size)
