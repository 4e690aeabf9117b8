#include "machine/device/recording.hpp"

#include <atomic>

namespace hortator::machine {
namespace {

std::atomic<int> recordings = 0;

}  // namespace

RecordingMark::RecordingMark() { ++recordings; }
RecordingMark::~RecordingMark() { --recordings; }

bool is_recording() { return recordings.load(std::memory_order_relaxed) > 0; }

}  // namespace hortator::machine
