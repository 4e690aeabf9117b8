#include "support/sim/generator.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Utils.h>
#include <ATen/ops/empty.h>

#include <array>
#include <cstring>

#include "support/sim/operators/recording.hpp"
#include "support/sim/state.hpp"

namespace hortator::sim {
namespace {

class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(int index)
      : c10::GeneratorImpl(sim::device(index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(std::uint64_t seed) override { dice_ = {seed, 0}; }
  void set_offset(std::uint64_t offset) override { dice_.offset = offset; }
  std::uint64_t get_offset() const override { return dice_.offset; }
  std::uint64_t current_seed() const override { return dice_.seed; }
  std::uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return dice_.seed;
  }
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == sizeof(Dice), "sim: not the state of a generator");
    std::memcpy(&dice_, state.data_dtype_initialized<std::uint8_t>(), sizeof dice_);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    auto state = at::empty({sizeof(Dice)}, at::TensorOptions(at::kCPU).dtype(at::kByte));
    std::memcpy(state.mutable_data_ptr(), &dice_, sizeof dice_);
    return state.getIntrusivePtr();
  }
  static c10::DeviceType device_type() { return c10::kPrivateUse1; }

  Dice take(std::uint64_t numbers) {
    const auto now = dice_;
    dice_.offset += numbers;
    return now;
  }

 private:
  Generator* clone_impl() const override {
    auto* copy = new Generator(device().index());
    copy->dice_ = dice_;
    return copy;
  }

  Dice dice_ = {.seed = c10::default_rng_seed_val};
};

}  // namespace

at::Generator new_generator(int device) { return at::make_generator<Generator>(device < 0 ? 0 : device); }

const at::Generator& default_generator(int device) {
  static auto& all = *new std::array<at::Generator, devices>([] {
    std::array<at::Generator, devices> made;
    for (int index = 0; index < devices; ++index) made.at(static_cast<std::size_t>(index)) = new_generator(index);
    return made;
  }());
  return all.at(static_cast<std::size_t>(device < 0 ? 0 : device));
}

Dice reserve_numbers(int device, std::uint64_t numbers) {
  auto generator = default_generator(device);
  const std::scoped_lock lock(generator.mutex());
  return generator.get<Generator>()->take(numbers);
}

Dice roll(at::Generator generator, int stream, std::uint64_t numbers) {
  if (generator.defined()) {
    const std::scoped_lock lock(generator.mutex());
    return generator.get<Generator>()->take(numbers);
  }
  const std::scoped_lock lock(state_lock());
  auto* const recording = recording_of(stream);
  if (recording == nullptr) return reserve_numbers(device_of(stream), numbers);
  recording->drawn += numbers;
  return {.seed = 0, .offset = recording->drawn - numbers};
}

at::Generator cpu_generator(const Dice& dice) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // spreads neighbouring offsets over all seeds
  return at::detail::createCPUGenerator(dice.seed ^ ((dice.offset + 1) * odd));
}

}  // namespace hortator::sim
