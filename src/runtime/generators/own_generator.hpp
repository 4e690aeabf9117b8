#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>

namespace hortator::runtime {

/// A generator of random numbers on the CPU. Seeding it costs nothing until a number is drawn.
class OwnGenerator {
 public:
  explicit OwnGenerator(std::uint64_t seed = 0) : seed_(seed) {}

  void seed(std::uint64_t seed) {
    seed_ = seed;
    is_seeded_ = false;
  }
  const at::Generator& seeded();

 private:
  std::uint64_t seed_;
  bool is_seeded_ = false;
  at::Generator generator_;
};

/// While it lives, this thread's operators on CPU tensors draw from `generator` where they would draw from LibTorch's
/// default generator, which stays as it is. Operators that are given a generator, operators on devices, and code that
/// asks LibTorch for its default generator are not affected. The innermost scope counts.
class DrawFrom {
 public:
  explicit DrawFrom(OwnGenerator& generator);
  ~DrawFrom();
  DrawFrom(const DrawFrom&) = delete;
  DrawFrom& operator=(const DrawFrom&) = delete;

 private:
  OwnGenerator* outer_;
  c10::impl::IncludeDispatchKeyGuard intercepts_;
};

/// Intercepts the operators that draw random numbers, at the first call. Call it before DrawFrom is used, where no
/// other thread runs operators. Throws Error if this LibTorch does not allow it.
void intercept_random_operators();

}  // namespace hortator::runtime
