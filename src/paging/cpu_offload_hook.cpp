#include <hortator/bigmodel/cpu_offload_hook.hpp>

namespace hortator {

struct CpuOffloadHook::State {
  std::function<void(c10::Device)> move;
  c10::Device device;
  std::optional<CpuOffloadHook> previous;
};

CpuOffloadHook::CpuOffloadHook(std::function<void(c10::Device)> move, c10::Device device,
                               std::optional<CpuOffloadHook> previous)
    : state_(std::make_shared<State>(std::move(move), device, std::move(previous))) {
  offload();
}

void CpuOffloadHook::load() {
  if (state_->previous) state_->previous->offload();
  if (state_->move) state_->move(state_->device);
}

void CpuOffloadHook::offload() {
  if (state_->move) state_->move(c10::kCPU);
}

void CpuOffloadHook::remove() { state_->move = nullptr; }

c10::Device CpuOffloadHook::device() const { return state_->device; }

}  // namespace hortator
