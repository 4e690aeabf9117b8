#include "parallel/tensor/divided_random.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <cstdint>
#include <mutex>

namespace hortator::parallel {
namespace {

constexpr std::uint64_t golden = 0x9E3779B97F4A7C15;

// SplitMix64's finaliser: neighbouring ranks get unrelated seeds.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EB;
  return value ^ (value >> 31U);
}

// From the host's generator, which can be read without waiting for a device.
std::uint64_t draw() {
  auto generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::scoped_lock lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

}  // namespace

DividedRandom::DividedRandom(c10::Device device, const TensorRanks& ranks)
    : generator_(at::globalContext().defaultGenerator(device)) {
  const auto common = draw();
  const std::scoped_lock lock(generator_.mutex());
  state_ = generator_.get_state();
  generator_.set_current_seed(mixed(common + golden * static_cast<std::uint64_t>(ranks.index() + 1)));
}

DividedRandom::~DividedRandom() {
  const std::scoped_lock lock(generator_.mutex());
  generator_.set_state(state_);
}

}  // namespace hortator::parallel
