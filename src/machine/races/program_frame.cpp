#include "machine/races/program_frame.hpp"

#include <execinfo.h>

#include <array>
#include <span>
#include <string_view>
#include <unordered_map>

#include "core/code_position.hpp"

namespace hortator::machine {
namespace {

enum class Module { program, libtorch, runtime };

Module find_module(const void* address) {
  const auto position = position_of(address);
  if (!position) return Module::runtime;
  const auto name = position->file;
  if (name.starts_with("libtorch") || name.starts_with("libc10")) return Module::libtorch;
  for (const std::string_view system : {"libc.", "libstdc++", "libgomp", "libpthread", "ld-"})
    if (name.starts_with(system)) return Module::runtime;
  return Module::program;
}

Module module_of(const void* address) {
  thread_local std::unordered_map<const void*, Module> known;
  const auto [found, is_new] = known.try_emplace(address, Module::runtime);
  if (is_new) found->second = find_module(address);
  return found->second;
}

}  // namespace

const void* program_frame() {
  std::array<void*, 64> frames;
  const auto count = backtrace(frames.data(), static_cast<int>(frames.size()));
  bool was_in_libtorch = false;
  for (const auto* const address : std::span(frames).first(static_cast<std::size_t>(count))) {
    const auto module = module_of(address);
    if (module == Module::libtorch) was_in_libtorch = true;
    if (module == Module::program && was_in_libtorch) return address;
  }
  return nullptr;
}

}  // namespace hortator::machine
