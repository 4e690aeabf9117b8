#include "support/sim/copies.hpp"

#include <ATen/ops/clone.h>

#include "support/sim/current.hpp"
#include "support/sim/host_memory.hpp"
#include "support/sim/memory.hpp"
#include "support/sim/near.hpp"
#include "support/sim/operators/plain_scope.hpp"
#include "support/sim/state.hpp"

namespace hortator::sim {
namespace {

// The stream of the source's device does the copy, after the work of the target's device and before its later work.
class BothDevices {
 public:
  BothDevices(int stream, int other) : stream_(stream), other_(other) { order(other_, stream_); }
  ~BothDevices() { order(stream_, other_); }
  BothDevices(const BothDevices&) = delete;
  BothDevices& operator=(const BothDevices&) = delete;

 private:
  static void order(int first, int second) {
    Event event;
    record(event, first);
    hold(second, event);
  }

  int stream_;
  int other_;
};

void submit_copy(const at::Tensor& from, const at::Tensor& to, const at::Tensor& source, int stream) {
  std::vector<BlockUse> uses;
  add_use(uses, source, false);
  add_use(uses, to, true);
  // A snapshot lives as long as the copy; other memory of the host is the caller's.
  auto read = source.is_same(from) ? near_view(source) : source;
  submit(stream, {.name = "copy_",
                  .uses = std::move(uses),
                  .run = [source = std::move(read), target = near_view(to)](const Dice&) {
                    const PlainScope scope;
                    target.copy_(source);
                  }});
}

}  // namespace

at::Tensor copy_tensor(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  const PlainScope scope;
  const auto stream = current_stream((is_far(from) ? from : to).device().index());
  if (is_far(from) && is_far(to)) {
    const BothDevices both(stream, current_stream(to.device().index()));
    submit_copy(from, to, from, stream);
    return to;
  }
  const auto& host = is_far(from) ? to : from;
  if (is_far(from)) {
    const std::scoped_lock lock(state_lock());
    ++mutable_counts().copies_to_host;
  }
  const auto locked = is_page_locked(host.storage().data());
  submit_copy(from, to, is_far(from) || locked ? from : at::clone(from), stream);
  if (locked) note_use(*block_at(host.storage().data()), stream);
  if (!non_blocking || (!locked && is_far(from))) wait_for_stream(stream);
  return to;
}

}  // namespace hortator::sim
