#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "machine/races/byte_pattern.hpp"
#include "machine/races/clock.hpp"

namespace hortator::sim {

struct Block;
struct Recording;

struct BlockUse {
  Block* block;
  machine::PatternedRange bytes;
  bool writes;
};

/// Where an operator's random numbers begin: fixed when it is submitted.
struct Dice {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
};

struct Task {
  std::string_view name;
  std::vector<BlockUse> uses;
  std::function<void(const Dice&)> run;
  Dice dice = {};
};

/// A position in a stream.
struct Event {
  int stream = 0;  ///< 0: never recorded
  std::uint64_t position = 0;
  machine::Clock clock = {};
  int queries = 0;
  const Recording* recording = nullptr;
};

// Streams are numbered from 1, over all devices.
int default_stream(int device);
int next_pool_stream(int device);
int device_of(int stream);

void submit(int stream, Task task);
void record(Event& event, int stream);
void hold(int stream, const Event& event);
bool is_reached(Event& event);
bool is_idle(int stream);

// Whether it is so, without a query that makes the device go on. The caller holds the lock of the state.
bool has_passed(const Event& event);
bool is_idle_now(int stream);

// The host waits. They throw the error of an operator that failed.
void wait_for(const Event& event);
void wait_for_stream(int stream);
void wait_for_device(int device);

/// Runs the work of a device's streams; not a wait of the program.
void run_device(int device);

/// Writes NaN over a block in the order of its stream, and is checked as a write.
void submit_poison(Block& block);

Recording* recording_of(int stream);
void set_recording(int stream, Recording* recording);

}  // namespace hortator::sim
