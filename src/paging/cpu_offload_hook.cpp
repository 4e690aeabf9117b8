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
  if (was_removed()) return;
  if (state_->previous) state_->previous->offload();
  state_->move(state_->device);
}

void CpuOffloadHook::offload() {
  if (!was_removed()) state_->move(c10::kCPU);
}

void CpuOffloadHook::remove() {
  state_->move = nullptr;
  state_->previous.reset();
}

bool CpuOffloadHook::was_removed() const { return !state_->move; }

c10::Device CpuOffloadHook::device() const { return state_->device; }

}  // namespace hortator
