#include "machine/races/stream_watch.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "machine/races/program_frame.hpp"
#include "machine/races/watch_state.hpp"
#include "machine/races/watched_guard.hpp"
#include "machine/races/watched_operators.hpp"

namespace hortator::machine {
namespace {

auto& registered_guard(c10::DeviceType type) {
  return c10::impl::device_guard_impl_registry.at(static_cast<std::size_t>(type));
}

}  // namespace

StreamWatch::StreamWatch(c10::DeviceType type, Report report) : type_(type), guard_(registered_guard(type).load()) {
  if (guard_ == nullptr || watch_state().is_on()) {
    throw UsageError({.what = "Streams cannot be watched",
                      .why = guard_ == nullptr
                                 ? text::concat("LibTorch has no devices of type ", c10::DeviceTypeName(type))
                                 : "they are being watched already"});
  }
  watch_state().start(type, std::move(report));
  registered_guard(type) = watched_guard(*guard_);
  operators_ = at::addGlobalCallback(watched_operators());
}

StreamWatch::~StreamWatch() {
  at::removeCallback(operators_);
  registered_guard(type_) = guard_;
  watch_state().stop();
}

void note_use(const at::Tensor& tensor, const c10::Stream& stream, std::string_view name, bool writes) {
  if (!watch_state().is_on() || !watch_state().is_watched(tensor)) return;
  watch_state().submit(stream);
  watch_state().use(tensor, stream, {.name = name, .site = program_frame()}, writes);
}

}  // namespace hortator::machine
