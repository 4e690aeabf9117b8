#include "planted_races.hpp"

#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>

#include <tuple>
#include <utility>

#include "sim_fixture.hpp"

namespace hortator::test {
namespace {

at::Tensor filled(double value, int device = 0) { return at::full({3000}, value, sim::device(device)); }

at::Tensor on(const c10::Stream& stream, const std::function<at::Tensor()>& work) {
  const c10::StreamGuard guard(stream);
  return work();
}

/// Streams beside the current one, all of them different.
std::vector<c10::Stream> sides(int count) {
  std::vector<c10::Stream> streams;
  for (int i = 0; i < count; ++i) streams.push_back(side_stream());
  return streams;
}

// Each stream reads what the one before has written; the current one begins and ends.
RaceProgram chain(int length) {
  return {"a chain of " + std::to_string(length), [length](Ordering& ordering) {
            auto value = filled(1);
            std::vector<at::Tensor> kept = {value};
            auto last = current_stream();
            for (const auto& stream : sides(length)) {
              ordering.after(last, stream);
              value = on(stream, [&] { return value * 2; });
              kept.push_back(value);
              last = stream;
            }
            ordering.after(last, current_stream());
            kept.push_back(value + 1);
            wait_for_all();
          }};
}

// Streams that write parts of one tensor, between writes of the whole.
RaceProgram parts(int count) {
  return {std::to_string(count) + " streams on parts of a tensor", [count](Ordering& ordering) {
            auto whole = filled(1);
            const auto streams = sides(count);
            for (int i = 0; i < count; ++i) {
              ordering.after(current_stream(), streams[static_cast<std::size_t>(i)]);
              on(streams[static_cast<std::size_t>(i)], [&] { return whole.narrow(0, 100 * i, 100).mul_(2); });
            }
            for (const auto& stream : streams) ordering.after(stream, current_stream());
            whole.add_(1);
            wait_for_all();
          }};
}

// The same with columns of a matrix: their ranges of bytes overlap, and their bytes do not.
RaceProgram columns(int count) {
  return {std::to_string(count) + " streams on columns of a matrix", [count](Ordering& ordering) {
            auto whole = at::full({30, 100}, 1.0, sim::device());
            const auto streams = sides(count);
            for (int i = 0; i < count; ++i) {
              ordering.after(current_stream(), streams[static_cast<std::size_t>(i)]);
              on(streams[static_cast<std::size_t>(i)], [&] { return whole.narrow(1, 10 * i, 10).mul_(2); });
            }
            for (const auto& stream : streams) ordering.after(stream, current_stream());
            whole.add_(1);
            wait_for_all();
          }};
}

// A buffer that is filled again and again: its readers come before the next write.
RaceProgram ring(int rounds) {
  return {"a buffer used " + std::to_string(rounds) + " times", [rounds](Ordering& ordering) {
            const auto buffer = at::empty({3000}, sim::device());
            const auto writer = side_stream();
            std::vector<at::Tensor> kept;
            for (int round = 0; round < rounds; ++round) {
              on(writer, [&] { return buffer.fill_(round); });
              ordering.after(writer, current_stream());
              kept.push_back(buffer * 2);
              ordering.after(current_stream(), writer);
            }
            on(writer, [&] { return buffer.zero_(); });
            wait_for_all();
          }};
}

// Tensors that die while another stream reads them.
RaceProgram released(int count) {
  return {std::to_string(count) + " tensors that are released", [count](Ordering& ordering) {
            const auto side = side_stream();
            std::vector<at::Tensor> inputs;
            for (int i = 0; i < count; ++i) inputs.push_back(filled(i));
            order(current_stream(), side);
            std::vector<at::Tensor> results;
            for (auto& input : inputs) {
              results.push_back(on(side, [&] { return input.sum(); }));
              ordering.keep(input, side);
              input.reset();
              results.push_back(filled(-1));  // where the input was, unless that is kept
            }
            wait_for_all();
          }};
}

// As gradients travel: packed, reduced on another stream, unpacked.
void reduce_gradients(Ordering& ordering) {
  const auto communication = side_stream();
  std::vector<at::Tensor> gradients = {filled(1), filled(2), filled(3)};
  const auto bucket = at::empty({9000}, sim::device());
  at::cat_out(const_cast<at::Tensor&>(bucket), gradients);  // NOLINT
  ordering.after(current_stream(), communication);
  on(communication, [&] { return bucket.div_(2); });
  ordering.after(communication, current_stream());
  at::_foreach_copy_(gradients, at::chunk(bucket, 3));
  at::_foreach_mul_(gradients, 0.5);
  wait_for_all();
}

// As batches are read ahead: page-locked memory, a copy on a stream of its own, a batch that dies early.
void load_batches(Ordering& ordering) {
  const auto copies = side_stream();
  std::vector<at::Tensor> results;
  for (int i = 0; i < 2; ++i) {
    const auto rows = at::full({3000}, i, at::kFloat).pin_memory();
    auto batch = on(copies, [&] { return rows.to(sim::device(), true); });
    ordering.after(copies, current_stream());
    results.push_back(batch.sum());
    ordering.keep(batch, current_stream());
    batch.reset();
  }
  results.push_back(on(copies, [] { return filled(0); }));
  wait_for_all();
}

// As a checkpoint is read: the host waits before it looks.
void read_on_host(Ordering& ordering) {
  sim::watch_host(true);
  const auto copies = side_stream();
  const auto value = filled(4);
  auto host = at::zeros({3000}).pin_memory();
  ordering.after(current_stream(), copies);
  on(copies, [&] { return host.copy_(value, true); });
  ordering.host_waits(copies);
  static_cast<void>(host.sum());
  wait_for_all();
  sim::watch_host(false);
}

// A host buffer that is filled for the next copy.
void fill_on_host(Ordering& ordering) {
  sim::watch_host(true);
  auto host = at::ones({3000}).pin_memory();
  const auto device = at::empty({3000}, sim::device());
  device.copy_(host, true);
  ordering.host_waits(current_stream());
  host.fill_(2);
  device.copy_(host, true);
  wait_for_all();
  sim::watch_host(false);
}

// Two devices: work of one waits for a copy that the other has made.
void two_devices(Ordering& ordering) {
  const auto side = side_stream(0);
  const auto there = filled(1, 1);
  auto here = on(side, [&] { return there.to(sim::device(0)); });
  ordering.after(side, current_stream());
  const auto sum = here + 1;
  ordering.after(current_stream(), side);
  on(side, [&] { return here.zero_(); });
  wait_for_all();
}

// An order that goes through a third stream.
void by_a_third(Ordering& ordering) {
  const auto streams = sides(2);
  const auto value = filled(1);
  ordering.after(current_stream(), streams[0]);
  ordering.after(streams[0], streams[1]);
  on(streams[1], [&] { return value.mul_(2); });
  ordering.after(streams[1], streams[0]);
  ordering.after(streams[0], current_stream());
  value.add_(1);
  wait_for_all();
}

void fused_step(Ordering& ordering) {
  const auto side = side_stream();
  std::vector<at::Tensor> parameters = {filled(1), filled(2)};
  std::vector<at::Tensor> gradients = {filled(3), filled(4)};
  ordering.after(current_stream(), side);
  on(side, [&] {
    at::_foreach_add_(parameters, gradients, -0.1);
    return parameters.front();
  });
  ordering.after(side, current_stream());
  at::_foreach_zero_(gradients);
  wait_for_all();
}

at::Tensor batch_norm(const at::Tensor& input, const at::Tensor& mean, const at::Tensor& variance, bool is_training) {
  return std::get<0>(at::native_batch_norm(input, {}, {}, mean, variance, is_training, 0.1, 1e-5));
}

// Training writes the running statistics, which the operator's schema does not say.
void running_statistics(Ordering& ordering) {
  const auto input = at::full({4, 3, 5}, 1.0, sim::device());
  const auto mean = at::zeros({3}, sim::device());
  const auto variance = at::ones({3}, sim::device());
  const auto side = side_stream();
  ordering.after(current_stream(), side);
  const auto output = on(side, [&] { return batch_norm(input, mean, variance, /*is_training=*/true); });
  ordering.after(side, current_stream());
  const auto shifted = mean + 1;
  wait_for_all();
}

// In evaluation they are only read, also by the backward: streams need no order among each other.
void evaluations(Ordering& ordering) {
  const auto input = at::full({4, 3, 5}, 1.0, sim::device());
  const auto mean = at::zeros({3}, sim::device());
  const auto variance = at::ones({3}, sim::device());
  const auto streams = sides(2);
  std::vector<at::Tensor> kept;
  for (const auto& stream : streams) {
    ordering.after(current_stream(), stream);
    kept.push_back(on(stream, [&] { return batch_norm(input, mean, variance, /*is_training=*/false); }));
    kept.push_back(on(stream, [&] {
      return std::get<0>(at::native_batch_norm_backward(input, input, {}, mean, variance, {}, {}, /*train=*/false, 1e-5,
                                                        {true, false, false}));
    }));
  }
  for (const auto& stream : streams) ordering.after(stream, current_stream());
  mean.add_(1);
  wait_for_all();
}

}  // namespace

void Ordering::after(const c10::Stream& first, const c10::Stream& second) {
  if (is_done()) order(first, second);
}

void Ordering::keep(const at::Tensor& tensor, const c10::Stream& stream) {
  if (is_done()) sim_guard().recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

void Ordering::host_waits(const c10::Stream& stream) {
  if (is_done()) sim_guard().synchronizeStream(stream);
}

void wait_for_all() {
  for (int device = 0; device < sim::devices; ++device)
    sim_guard().synchronizeDevice(static_cast<c10::DeviceIndex>(device));
}

int needed_orderings(const RaceProgram& program) {
  Ordering ordering(Ordering::nothing);
  program.run(ordering);
  return ordering.calls();
}

std::vector<RaceProgram> race_programs() {
  return {chain(1),
          chain(2),
          chain(5),
          parts(1),
          parts(3),
          parts(5),
          columns(2),
          columns(4),
          ring(1),
          ring(3),
          released(1),
          released(4),
          {"gradients in a bucket", reduce_gradients},
          {"batches read ahead", load_batches},
          {"memory read by the host", read_on_host},
          {"memory filled by the host", fill_on_host},
          {"two devices", two_devices},
          {"an order through a third stream", by_a_third},
          {"an optimizer's step on a stream of its own", fused_step},
          {"running statistics in training", running_statistics},
          {"running statistics in evaluation", evaluations}};
}

}  // namespace hortator::test
