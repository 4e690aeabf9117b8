#include "support/sim/current.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <utility>

#include "support/sim/state.hpp"
#include "support/sim/streams.hpp"

namespace hortator::sim {
namespace {

thread_local int device_of_thread = 0;
thread_local std::array<int, devices> streams_of_thread = {};  // 0: the default one

std::vector<int>& all_contexts() {
  static auto& all = *new std::vector<int>;
  return all;
}

}  // namespace

int current_device() { return device_of_thread; }

void set_current_device(int device) {
  TORCH_CHECK(device >= 0 && device < devices, "sim: there is no device ", device);
  if (device != device_of_thread) make_context(device);
  device_of_thread = device;
}

int exchange_current_device(int device) {
  const auto before = device_of_thread;
  if (device >= 0) set_current_device(device);
  return before;
}

void return_to_device(int device) { device_of_thread = device; }

int current_stream(int device) {
  const auto stream = streams_of_thread.at(static_cast<std::size_t>(device));
  return stream == 0 ? default_stream(device) : stream;
}

void set_current_stream(int stream) { streams_of_thread.at(static_cast<std::size_t>(device_of(stream))) = stream; }

void make_context(int device) {
  const std::scoped_lock lock(state_lock());
  if (!has_context(device)) all_contexts().push_back(device);
}

bool has_context(int device) {
  const std::scoped_lock lock(state_lock());
  return std::ranges::find(all_contexts(), device) != all_contexts().end();
}

std::vector<int> contexts() {
  const std::scoped_lock lock(state_lock());
  return all_contexts();
}

void forget_contexts() {
  const std::scoped_lock lock(state_lock());
  all_contexts().clear();
}

c10::Stream stream_of(int stream) {
  const auto device = device_of(stream);
  const c10::StreamId id = stream == default_stream(device) ? 0 : stream;
  return c10::Stream(c10::Stream::UNSAFE, sim::device(device), id);
}

int number_of(const c10::Stream& stream) {
  return stream.id() == 0 ? default_stream(stream.device_index()) : static_cast<int>(stream.id());
}

}  // namespace hortator::sim
